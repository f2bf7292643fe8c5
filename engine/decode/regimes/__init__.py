"""How each regime reads a prompt and a canvas, one file a regime. Knows models and sessions; judges nothing."""

from remask.engine.decode.regimes.base import Reader
from remask.engine.decode.regimes.bidirectional import BidirectionalReader
from remask.engine.decode.regimes.block_causal import BlockCausalReader
from remask.engine.decode.regimes.causal import CausalReader
from remask.engine.decode.regimes.strict_causal import StrictCausalReader
from remask.engine.decode.regimes.uniform import UniformReader
from remask.engine.models.model import Model
from remask.engine.models.spec import Regime

READERS: dict[Regime, type[Reader]] = {
    Regime.CAUSAL: CausalReader,
    Regime.STRICT_CAUSAL: StrictCausalReader,
    Regime.BLOCK_CAUSAL: BlockCausalReader,
    Regime.BIDIRECTIONAL: BidirectionalReader,
    Regime.UNIFORM: UniformReader,
}


def reader_for(model: Model) -> Reader:
    """The reader of the model's regime."""
    return READERS[model.spec.regime](model)


__all__ = ["Reader", "reader_for"]
