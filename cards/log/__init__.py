"""The durable event log: its writer, its recent frames in memory."""
