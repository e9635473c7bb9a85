"""An operator's answer as a form.

Spec: EMIT 7.3; Ruling E16.
"""

from typing import Any, Final

from django import forms
from msgspec import UNSET

from cards.protocol.codec import decode_json
from cards.protocol.errors import RemoteProtocolError
from cards.protocol.json_form import JSONValue

#: The user's words, and an answer to begin with. Spec: EMIT 7.3.
_DECISIONS: Final = {
    "permission": ("approved", "denied"),
    "question": ("approved", "denied"),
    "plan_review": ("approved", "denied"),
    "step_decision": ("continue", "retry", "cancel"),
}
_PAYLOADS: Final = {
    "permission": '{"scope": "once", "message": ""}',
    "question": '{"selected_options": [], "custom_text": ""}',
    "plan_review": '{"reason": ""}',
    "step_decision": '{"note": ""}',
}


class AnswerForm(forms.Form):
    """An answer in the user's place; whether it fits is judged as any answer is.

    Args:
        kind: Of the prompt.
        inner: What is asked.
    """

    payload = forms.CharField(
        required=False,
        widget=forms.Textarea(attrs={"rows": 6, "cols": 80, "class": "cw-mono"}),
        help_text="A JSON object, as a client would send it; empty for none.",
    )

    def __init__(self, data: Any, *, kind: str, inner: dict[str, JSONValue]) -> None:
        super().__init__(data, initial={"payload": _PAYLOADS[kind]})
        words = _DECISIONS[kind]
        # Where nothing may be tried again, the word would count as `cancel`.
        legal = [word for word in words if word != "retry" or inner.get("allow_retry")]
        self.fields["decision"] = forms.ChoiceField(
            choices=[(word, word) for word in legal]
        )
        self.order_fields(["decision", "payload"])

    def clean_payload(self) -> dict[str, JSONValue] | None:
        """Return the payload as an object; None for none."""
        text = self.cleaned_data["payload"].strip()
        if not text:
            return None
        try:
            payload = decode_json(text)
        except RemoteProtocolError as error:
            raise forms.ValidationError(str(error)) from error
        if not isinstance(payload, dict):
            raise forms.ValidationError("not a JSON object")
        return payload

    def refuse(self, refusal: RemoteProtocolError) -> None:
        """Show why the answer does not fit, at the field that is at fault."""
        details = refusal.error.details
        name = "" if details is UNSET else str(details.get("field", ""))
        self.add_error(
            "decision" if name == "decision" else "payload", refusal.error.message
        )
