"""A Python function in a kernel's file: a line that makes it of its image, under a name, with the registers that it takes and gives."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...plan.types import DataType, Kind
from ...plan.udf.code_image import CodeImage
from ...plan.udf.python_function import PythonCall
from ...records import dataclass
from ..loop import Machine
from ..ranges import IntegerRange

IMPORT = {
    target: f"from fuseline.codegen.{target}.functions_udf_{target} import failed_of, python_function, value_of"
    for target in ("cpu", "cuda")
}
I64 = (-(2**63), 2**63 - 1)


@dataclass(frozen=True, slots=True)
class DeviceFunction:
    """A Python function as kernels call it: whether to, and then its arguments; what it gives is a value and whether it failed."""

    name: str
    image: CodeImage
    parameters: tuple[str, ...]
    result: str
    low: int
    high: int

    @property
    def line(self) -> str:
        kinds = f"{' '.join(self.parameters)!r}, {self.result!r}, {self.low}, {self.high}, {self.image.has_loops}"
        return f"{self.name} = python_function({self.image.text!r}, {kinds})"


def definitions(functions: Iterable[DeviceFunction], target: str) -> list[str]:
    """Return the lines of a kernel's file that make its Python functions."""
    return [IMPORT[target], "", *(function.line for function in functions), "", ""]


def device_function(
    call: PythonCall, name: str, intervals: Sequence[IntegerRange | None] = ()
) -> DeviceFunction:
    """Return the function of a call that has an image; `intervals` hold its arguments, as far as they are known."""
    assert call.image is not None
    low, high = bounds(call.type)
    kinds = [register_kind(a.type) for a in call.args]
    for place, interval in enumerate(intervals):
        if interval is not None and kinds[place] == "whole" and interval.fits_i32:
            kinds[place] += between(interval)
    return DeviceFunction(name, call.image, tuple(kinds), register_kind(call.type), low, high)


def between(interval: IntegerRange) -> str:
    """Return limits that tell the compiler where no sum or product overflows: powers of two, so that much the same data share a kernel."""
    most = (1 << max(interval.magnitude, 1).bit_length()) - 1
    return f":{-most if interval.low < 0 else 0}:{most}"


def register_kind(data_type: DataType) -> str:
    """Return what Python has for a type's values in registers: whole, real, single or truth."""
    if data_type.kind is Kind.BOOLEAN:
        return "truth"
    if data_type.is_float:
        return "single" if data_type.kind is Kind.FLOAT else "real"
    return "whole"


def machine_of_kind(kind: str) -> Machine:
    """Return the register of a result."""
    return {
        "truth": Machine.BOOL,
        "real": Machine.F64,
        "single": Machine.F32,
        "whole": Machine.I64,
    }[kind]


def bounds(data_type: DataType) -> tuple[int, int]:
    """Return the whole numbers that a type holds, as far as 64 bits with a sign do."""
    if data_type.is_integer:
        low, high = data_type.integer_range
        return low, min(high, I64[1])
    if data_type.kind is Kind.DATE:
        return -(2**31) + 2, 2**31 - 2  # the two ends are DuckDB's infinities
    return (I64[0] + 2, I64[1] - 1) if data_type.is_ticks else I64
