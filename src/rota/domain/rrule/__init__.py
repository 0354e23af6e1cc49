"""RFC 5545 recurrence sets over local times: compiled once, seekable, refused by name where they are wrong."""

from rota.domain.rrule.engine import RRuleSet, compile_rrule

__all__ = ["RRuleSet", "compile_rrule"]
