"""Whether an edited plan can be carried out. Spec: Ruling E19; case HC-32."""

from collections.abc import Collection, Mapping, Sequence

from cards.protocol.prompts import ReviewedStep


def fault_of(steps: Sequence[ReviewedStep], *, available: Collection[str] = ()) -> str:
    """Return why a plan cannot be carried out, for its user; "" when it can.

    Steps are carried out in order, so each may build on earlier ones only; that rules
    out cycles as well.

    Args:
        available: Kinds of sub-agents that a step may name; none for any.
    """
    places = {step.id: place for place, step in enumerate(steps)}
    seen: set[str] = set()
    for place, step in enumerate(steps):
        fault = _fault_of_step(step, seen, available)
        fault = fault or _fault_of_dependencies(step, place, places)
        if fault:
            return f"Step {place + 1} ({step.id}) {fault}."
        seen.add(step.id)
    return ""


def _fault_of_step(
    step: ReviewedStep, seen: Collection[str], available: Collection[str]
) -> str:
    if not step.id:
        return "has no id"
    if not step.description:
        return "says nothing of what is to be done"
    if step.id in seen:
        return "has the id of an earlier step"
    if step.subagent_type and available and step.subagent_type not in available:
        there_are = ", ".join(sorted(available))
        return f"is for {step.subagent_type}, which is none of {there_are}"
    return ""


def _fault_of_dependencies(
    step: ReviewedStep, place: int, places: Mapping[str, int]
) -> str:
    # Looked up, not looked for: an edit may name millions of them.
    for needed in step.depends_on or ():
        if needed == step.id:
            return "depends on itself"
        if needed not in places:
            return f"depends on {needed}, which is not in the plan"
        if places[needed] > place:
            return f"depends on {needed}, which comes later"
    return ""
