"""The import rule of one room: a contract type for import-linter, an allow-list where its own are deny-lists.

A room is a module or package of `rota`. Its contract names what it may import directly, so a room that
is added later is out of reach until somebody decides otherwise. Indirect imports need no rule of their
own: each step of a chain has its room's contract.
"""

import sys
from typing import cast

from grimp import ImportGraph
from importlinter import Contract, ContractCheck, fields, output

ROOT = "rota"


class RoomContract(Contract):
    """`room` imports nothing of Rota but itself and `may_import`.

    A room in parentheses may be missing. `standard_library`, where given, is all of it that the room may
    import; `packages`, where given, are all the installed packages that it may.
    """

    room = fields.StringField()
    may_import = fields.ListField(subfield=fields.StringField())
    standard_library = fields.ListField(subfield=fields.StringField(), required=False)
    packages = fields.ListField(subfield=fields.StringField(), required=False)

    def check(self, graph: ImportGraph, verbose: bool) -> ContractCheck:
        """Collect the room's direct imports that nothing allows; a room that is missing is a mistake."""
        name = str(self.room)
        room = name.strip("()")
        if room not in graph.modules:
            if name == room:
                raise ValueError(f"there is no {room}: correct its contract, or write ({room}) until it is")
            return ContractCheck(kept=True)
        output.verbose_print(verbose, f"checking the imports of {room}")
        illegal = [
            f"{importer} -> {imported} (l.{details['line_number']})"
            for importer in sorted({room, *graph.find_descendants(room)})
            for imported in sorted(graph.find_modules_directly_imported_by(importer))
            if not self._allows(room, imported)
            for details in graph.get_import_details(importer=importer, imported=imported)
        ]
        return ContractCheck(kept=not illegal, metadata={"illegal": illegal})

    def render_broken_contract(self, check: ContractCheck) -> None:
        """Print one line for each import that has to go."""
        for line in check.metadata["illegal"]:
            output.print_error(f"- {line}", bold=False)
        output.new_line()

    def _allows(self, room: str, imported: str) -> bool:
        package = imported.partition(".")[0]
        if package == ROOT:
            rooms = [room, *cast("list[str]", self.may_import)]
            return any(imported == allowed or imported.startswith(f"{allowed}.") for allowed in rooms)
        is_standard = package in sys.stdlib_module_names
        outside = cast("list[str] | None", self.standard_library if is_standard else self.packages)
        return outside is None or package in outside
