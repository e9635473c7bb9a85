"""One ORM insert and one group_send for each frame."""
