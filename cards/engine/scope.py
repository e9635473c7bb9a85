"""A scope: what a turn and an agent can both do."""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import ClassVar

import msgspec
from msgspec import UNSET

from cards.engine.artifacts import Filing
from cards.engine.asking import Asking, PromptTimeout, milliseconds_of
from cards.engine.block import Block, Context, innermost_card
from cards.engine.client_tools import ClientTool, ClientToolResult
from cards.engine.messages import Message, Thinking
from cards.engine.plans import PlanBlock, PlanStep
from cards.engine.tools import Tool
from cards.engine.values import (
    AgentType,
    BudgetKind,
    MemoryOp,
    MessageRole,
    Strategy,
    TodoStatus,
    budget_or_unset,
    count_or_unset,
    one_of,
    text_or_unset,
    texts_or_unset,
)
from cards.protocol.card_tree import Card
from cards.protocol.hints import default_hint
from cards.protocol.ids import MAIN_AGENT, is_safe_id, mint_run_id
from cards.protocol.json_form import clean_text
from cards.protocol.kinds import CardKind, Severity, TickKind
from cards.protocol.payloads import (
    AgentPayload,
    BudgetPayload,
    EscalationInner,
    MemoryOpPayload,
    Payload,
    SystemPayload,
    TeamPayload,
    TickPayload,
    TodoPayload,
)


class Scope(Asking, Filing):
    """The methods that open cards and blocks, with one agent_id for all of them.

    `parent=` takes a block and overrides where a card hangs.

    Spec: engine-api.md, Scopes; EMIT 3.2.
    """

    def __init__(
        self,
        context: Context,
        *,
        agent_id: str,
        agent_run_id: str,
        topics_shown: set[str],
    ) -> None:
        self._context = context
        self._scope_agent_id = agent_id
        self._scope_run_id = agent_run_id
        self._topics_shown = topics_shown
        self._todos: dict[str, Card] = {}
        self._last_message: Message | None = None
        # The last message as this task sees it: parallel tasks of one scope each
        # have their own tool calls under their own messages.
        self._task_message: ContextVar[Message | None] = ContextVar(
            "cardwire_last_message", default=None
        )

    def message(
        self,
        *,
        role: MessageRole = "assistant",
        model: str | None = None,
        parent: Block | None = None,
    ) -> Message:
        """Return the block of a reply.

        Args:
            role: Whose words they are.
            model: Shown beside the reply; None takes the engine's.
            parent: Block to hang under; None for the innermost open one.
        """
        message = Message(
            self._context,
            parent=parent.card if parent else None,
            agent_id=self._scope_agent_id,
            agent_run_id=self._scope_run_id,
            role=role,
            model=model,
        )
        self._last_message = message
        self._task_message.set(message)
        return message

    def thinking(self, *, parent: Block | None = None) -> Thinking:
        """Return the block of the model's thoughts."""
        return Thinking(
            self._context,
            parent=parent.card if parent else None,
            agent_id=self._scope_agent_id,
            agent_run_id=self._scope_run_id,
        )

    def tool(
        self,
        name: str,
        *,
        input: object = None,  # noqa: A002 - the wire's word
        intent: str | None = None,
        call_id: str | None = None,
        parent: Block | None = None,
    ) -> Tool:
        """Return the block of a tool call; its parent is the scope's last message.

        Args:
            name: Of the tool.
            input: Anything with a JSON form; None for none.
            intent: What the call is for, in the user's language.
            call_id: The model's id of the call; becomes the card's when it is safe
                and unused.
            parent: Block to hang under instead.

        Spec: EMIT 14.2.
        """
        return Tool(
            self._context,
            parent=parent.card if parent else self._last_message_card(),
            agent_id=self._scope_agent_id,
            agent_run_id=self._scope_run_id,
            name=name,
            input=input,
            intent=intent,
            call_id=call_id,
        )

    async def client_tool(
        self,
        name: str,
        input: object = None,  # noqa: A002 - the wire's word
        *,
        intent: str | None = None,
        timeout: float | None = None,  # noqa: ASYNC109 - the API's word
    ) -> ClientToolResult:
        """Have the client run a tool; its card closes with the result.

        Args:
            name: Of the tool, as the client knows it.
            input: Anything with a JSON form.
            intent: What the call is for, in the user's language.
            timeout: Seconds; None waits for as long as it takes.

        Raises:
            PromptTimeout: No result came in time.
            PromptUnavailable: The call could not be stored.

        Spec: EMIT 9, 14; Ruling E24.
        """
        tool = ClientTool(
            self._context,
            parent=self._last_message_card(),
            agent_id=self._scope_agent_id,
            agent_run_id=self._scope_run_id,
            name=name,
            input=input,
            intent=intent,
        )
        await self._context.desk.call(tool, timeout_ms=milliseconds_of(timeout))
        if tool.has_timed_out:
            raise PromptTimeout("no result came in time")
        return tool.result

    def _last_message_card(self) -> Card | None:
        message = self._task_message.get() or self._last_message
        return message.card if message is not None and message.is_entered else None

    def agent(
        self,
        name: str,
        *,
        task_prompt: str | None = None,
        agent_id: str | None = None,
        subagent_type: str | None = None,
        agent_type: AgentType = "sync",
        parent: Block | None = None,
    ) -> "Agent":
        """Return the block of a sub-agent, which is a scope itself.

        Args:
            name: Shown as its title.
            task_prompt: What it is told to do.
            agent_id: Its id; None mints one. An unsafe or used one is replaced.
            subagent_type: Which kind of agent it is.
            agent_type: Whether its caller waits for it.
            parent: Block to hang under; None for the innermost open one.
        """
        return Agent(
            self._context,
            parent=parent.card if parent else None,
            caller_agent_id=self._scope_agent_id,
            name=name,
            task_prompt=task_prompt,
            wanted_agent_id=agent_id,
            subagent_type=subagent_type,
            agent_type=agent_type,
            topics_shown=self._topics_shown,
        )

    def plan(
        self,
        *,
        goal: str,
        steps: Sequence[PlanStep | Mapping[str, object]],
        strategy: Strategy = "sequential",
        rationale: str | None = None,
        plan_id: str | None = None,
        parent: Block | None = None,
    ) -> PlanBlock:
        """Return the block of a plan that is being carried out.

        Args:
            goal: What it is for.
            steps: In order; each a `PlanStep` or a mapping with its fields.
            strategy: How the steps run.
            rationale: Why so.
            plan_id: Its id; None mints one.
            parent: Block to hang under; None for the innermost open one.

        Raises:
            TypeError: The steps, or what one depends on, are a text instead of a list.
            ValueError: A step is malformed or two have the same id.
        """
        return PlanBlock(
            self._context,
            parent=parent.card if parent else None,
            agent_id=self._scope_agent_id,
            agent_run_id=self._scope_run_id,
            goal=goal,
            steps=steps,
            strategy=strategy,
            rationale=rationale,
            plan_id=plan_id,
        )

    async def todo(
        self,
        subject: str,
        status: TodoStatus = "pending",
        *,
        owner: str | None = None,
        active_form: str | None = None,
    ) -> None:
        """Show an entry of the to-do list; the same subject again updates it.

        Args:
            subject: What is to be done.
            status: How far it is.
            owner: Who does it.
            active_form: How to call it while it is being done.

        Raises:
            ValueError: The status is another word.
        """
        payload = TodoPayload(
            subject=clean_text(subject),
            status=one_of("status", status, TodoStatus),
            owner=text_or_unset(owner),
            active_form=text_or_unset(active_form),
        )
        known = self._todos.get(subject)
        if known is None:
            added = self._add_leaf(CardKind.TODO, payload)
            if added is not None:
                self._todos[subject] = added
        else:
            # Ruling E11: a patch carries what changes, and the subject does not.
            patch = msgspec.structs.replace(payload, subject=UNSET)
            self._context.builder.set(known, patch)
        await self._context.builder.writer.breathe()

    async def team(self, name: str, members: Sequence[str]) -> None:
        """Show a group of agents.

        Args:
            name: Of the group.
            members: Their names.

        Raises:
            TypeError: The members are a text instead of a list.
        """
        self._add_leaf(
            CardKind.TEAM,
            TeamPayload(
                team_name=clean_text(name), members=texts_or_unset("members", members)
            ),
        )
        await self._context.builder.writer.breathe()

    async def budget(
        self,
        kind: BudgetKind,
        spent: Mapping[str, float] | None = None,
        limit: Mapping[str, float] | None = None,
    ) -> None:
        """Tell about a budget.

        Args:
            kind: What happened to it.
            spent: Parts `tokens`, `usd`, `calls`.
            limit: The same parts.

        Raises:
            ValueError: The kind is another word, or an amount has another part.
        """
        payload = BudgetPayload(
            kind=one_of("kind", kind, BudgetKind),
            spent=budget_or_unset(spent),
            limit=budget_or_unset(limit),
        )
        self._add_leaf(CardKind.BUDGET, payload)
        await self._context.builder.writer.breathe()

    async def memory_op(
        self,
        op: MemoryOp,
        subject: str | None = None,
        bytes: int | None = None,  # noqa: A002 - the wire's word
    ) -> None:
        """Tell that memory was read, written or compacted.

        Args:
            op: What was done.
            subject: To what.
            bytes: How much of it.

        Raises:
            ValueError: The op is another word.
        """
        payload = MemoryOpPayload(
            op=one_of("op", op, MemoryOp),
            subject=text_or_unset(subject),
            bytes=count_or_unset(bytes),
        )
        self._add_leaf(CardKind.MEMORY_OP, payload)
        await self._context.builder.writer.breathe()

    async def system(  # noqa: PLR0917 - the signature is the API
        self,
        topic: str,
        title: str,
        summary: str | None = None,
        action_hint: str | None = None,
        icon: str = "info",
        once: bool = True,
    ) -> None:
        """Show a notice of the framework.

        Args:
            topic: Stable snake_case word that clients route by.
            title: Shown by every client.
            summary: What is the matter.
            action_hint: What the user can do about it.
            icon: `warning` shows it as one.
            once: Whether a topic is shown only once in a session.

        Spec: EMIT 10.9.
        """
        if (once and topic in self._topics_shown) or not self._context.may_emit():
            return
        self._topics_shown.add(topic)
        payload = SystemPayload(
            topic=text_or_unset(topic),
            summary=text_or_unset(summary),
            action_hint=text_or_unset(action_hint),
        )
        builder = self._context.builder
        builder.add(
            CardKind.SYSTEM,
            payload,
            card_id=builder.free_card_id(CardKind.SYSTEM, None),
            parent=None,
            agent_id=self._scope_agent_id,
            agent_run_id=self._scope_run_id,
            hint=default_hint(
                CardKind.SYSTEM,
                payload,
                title=clean_text(title),
                summary=clean_text(summary or ""),
                icon=icon or "info",
            ),
            severity=Severity.WARN if icon == "warning" else Severity.INFO,
        )
        await builder.writer.breathe()

    async def escalate(self, from_mode: str, to_mode: str, reason: str = "") -> None:
        """Tell that the way of working changes; a tick on the turn. Spec: EMIT 11."""
        inner = EscalationInner(
            from_mode=clean_text(from_mode),
            to_mode=clean_text(to_mode),
            reason=text_or_unset(reason),
        )
        builder = self._context.builder
        builder.tick(
            self._context.turn_card, TickPayload(kind=TickKind.ESCALATION, inner=inner)
        )
        await builder.writer.breathe()

    async def flush(self) -> None:
        """Wait until everything emitted so far is durable.

        Raises:
            LogWriteFailed: Some of it could not be stored.
        """
        await self._context.builder.writer.flush()

    def _add_leaf(self, kind: CardKind, payload: Payload) -> Card | None:
        if not self._context.may_emit():
            return None
        builder = self._context.builder
        return builder.add(
            kind,
            payload,
            card_id=builder.free_card_id(kind, None),
            parent=innermost_card(self._context),
            agent_id=self._scope_agent_id,
            agent_run_id=self._scope_run_id,
        )


class Agent(Block, Scope):
    """A sub-agent: a block and a scope; all its frames carry its id.

    Spec: EMIT 3.2, 10, 14.3.
    """

    kind: ClassVar[CardKind] = CardKind.AGENT

    def __init__(
        self,
        context: Context,
        *,
        parent: Card | None,
        caller_agent_id: str,
        name: str,
        task_prompt: str | None,
        wanted_agent_id: str | None,
        subagent_type: str | None,
        agent_type: AgentType,
        topics_shown: set[str],
    ) -> None:
        run_id = mint_run_id(context.builder.random_hex)
        Block.__init__(self, context, parent=parent, agent_run_id=run_id)
        Scope.__init__(
            self,
            context,
            agent_id="",
            agent_run_id=run_id,
            topics_shown=topics_shown,
        )
        self._caller_agent_id = caller_agent_id
        self._name = clean_text(name).strip() or "agent"
        self._task_prompt = task_prompt
        self._wanted_agent_id = wanted_agent_id
        self._subagent_type = subagent_type
        self._agent_type = one_of("agent_type", agent_type, AgentType)
        self._output: AgentPayload | None = None

    @property
    def agent_id(self) -> str:
        """Id of the agent, once entered; the id of its card."""
        return self.card.card_id

    def _opening(self) -> Payload:
        return AgentPayload(
            name=self._name,
            agent_type=self._agent_type,
            subagent_type=text_or_unset(self._subagent_type),
            parent_agent_id=self._caller_agent_id,
            task_prompt=text_or_unset(self._task_prompt),
        )

    def _wanted_card_id(self) -> str | None:
        wanted = self._wanted_agent_id
        if wanted is None or wanted == MAIN_AGENT or not is_safe_id(wanted):
            return None
        return wanted

    def _open_card(self) -> Card:
        card = super()._open_card()
        self._scope_agent_id = card.card_id
        return card

    def finish(
        self, output_summary: str | None = None, num_turns: int | None = None
    ) -> None:
        """Record what the agent gave, for the close.

        Args:
            output_summary: In a sentence or two.
            num_turns: How often it asked its model.
        """
        self._output = AgentPayload(
            output_summary=text_or_unset(output_summary),
            num_turns=count_or_unset(num_turns),
        )

    def _inner(self) -> Payload | None:
        return self._naming_made(self._output, AgentPayload)
