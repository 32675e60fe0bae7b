"""The kinds of random programs, by name."""

from __future__ import annotations

from tests.differential.choices import ChoicePrograms
from tests.differential.clusters import ClusterPrograms
from tests.differential.described import DescribedPrograms
from tests.differential.failing import FailingPrograms
from tests.differential.files import FilePrograms
from tests.differential.prefixes import PrefixPrograms
from tests.differential.programs import Drawn, Programs
from tests.differential.sequences import SequencePrograms
from tests.differential.served import ServedPrograms
from tests.differential.shared import SharedPrograms
from tests.differential.stored import StoredPrograms
from tests.differential.structures import StructuredPrograms
from tests.differential.tables import TablePrograms
from tests.differential.values import ValuePrograms
from tests.differential.wire import WirePrograms

KINDS: dict[str, type[Drawn]] = {
    "plain": Programs,
    "structured": StructuredPrograms,
    "failing": FailingPrograms,
    "files": FilePrograms,
    "tables": TablePrograms,
    "sequences": SequencePrograms,
    "choices": ChoicePrograms,
    "stored": StoredPrograms,
    "clusters": ClusterPrograms,
    "described": DescribedPrograms,
    "shared": SharedPrograms,
    "served": ServedPrograms,
    "values": ValuePrograms,
    "wire": WirePrograms,
    "prefixes": PrefixPrograms,
}
