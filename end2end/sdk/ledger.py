"""Compares what passed the gateway with what is stored: every event that was
acknowledged is stored once and as it was sent, and nothing else is."""

from collections import Counter

import wire
from compare import few


class Ledger:
    """The events that a library has sent, and the answers of the service."""

    def __init__(self, library, gateway):
        self.named = self.by_uuid if library.gives_uuids else wire.content
        self.acknowledged = Counter()
        # Sent, and the service ended before it could answer.
        self.unanswered = Counter()
        # Sent, and refused.
        self.refused = Counter()
        self.sent = {}
        for one in list(gateway.passed):
            self.sent |= {self.named(event): event for event in one.events}
            if one.status is None:
                self.unanswered.update(map(self.named, one.events))
            elif one.status == 503:
                self.refused.update(map(self.named, one.events))
            else:
                self.acknowledged.update(map(self.named, one.accepted()))

    @staticmethod
    def by_uuid(event):
        return event["uuid"]

    def compare(self, stored):
        """`stored` holds every acknowledged event once, and no unknown event."""
        found = Counter(map(self.named, stored))
        lost = [self.described(name) for name in self.acknowledged if name not in found]
        assert not lost, f"acknowledged and not stored: {few(lost)}"
        again = {self.described(name): times for name, times in found.items() if times > 1}
        assert not again, f"stored more than once: {few(again)}"
        # The service may have stored events that it had no time to acknowledge.
        strange = [
            name for name in found
            if name not in self.acknowledged and name not in self.unanswered
        ]
        assert not strange, f"stored and not acknowledged: {few(strange)}"
        changed = [
            f"sent {self.described(self.named(event))}, stored {wire.content(event)}"
            for event in stored if self.described(self.named(event)) != wire.content(event)
        ]
        assert not changed, f"changed on the way: {few(changed)}"

    def repeats(self):
        """How many duplicates the service has met: at least, and at most."""
        least = sum(times - 1 for times in self.acknowledged.values())
        return least, (self.acknowledged + self.unanswered).total() - len(
            self.acknowledged.keys() | self.unanswered.keys()
        )

    def described(self, name):
        return wire.content(self.sent[name])
