"""Compiles every kernel for a Hopper card without one; a program, since the tests' process interprets kernels."""

import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from remask.kernels import attention, confidence, confidence_head, rms_norm, rotary, scaled_product

TARGET = GPUTarget("cuda", 90, 32)
ALIGNED = ("_ptr", "_stride", "width", "width_each")  # to 16, as they are at work: loads are pipelined then
SHARED = 227 * 1024  # bytes that a block of a Hopper card may take
FLOAT, INT, LONG = "*fp32", "*i32", "*i64"


def kernels(dtype):
    """(kernel, types of its arguments in order, constants by name)."""
    x = f"*{dtype}"
    yield rms_norm._rms_norm_kernel, [x, "i32", x, x, "i32", "i32", "fp32"], {"BLOCK_SIZE": 1024}
    yield (
        confidence._confidence_kernel,
        [x, "i32", LONG, FLOAT, "i32", INT, "i32"],
        {"N_FORBIDDEN": 3, "N_VOCAB": 65536, "BLOCK_SIZE": 4096},
    )
    few = {"N_FORBIDDEN": 3, "N_VOCAB": 65536, "BLOCK_M": 16, "BLOCK_N": 128, "BLOCK_K": 64, "WIDEN": False}
    eight_bits = ("*i8", "*fp8e4nv") if dtype == "bf16" else ()  # what a card computes in beside them
    for head in (x, *eight_bits):
        yield (
            confidence_head._confidence_head_kernel,
            [x, "i32", head, "i32", FLOAT, LONG, FLOAT, "i32", INT, "i32", "i32", "i32", "i32"],
            few | {"HAS_SCALE": head != x},
        )
    for rows, tokens, out in ((r, *more) for r in eight_bits for more in ((16, x), (64, FLOAT))):
        yield (
            scaled_product._scaled_product_kernel,
            [x, "i32", rows, "i32", FLOAT, x, out, "i32", "i32", "i32", "i32"],
            {"HAS_BIAS": True, "BLOCK_M": tokens, "BLOCK_N": 64, "BLOCK_K": 128, "WIDEN": False},
        )
    yield (
        rotary._rotary_kernel,
        [x, "i32", LONG, FLOAT, x, x, x, x, x, "i32", "i32", LONG, "i32", "fp32"],
        {"N_HEADS": 9, "N_KV_HEADS": 3, "HAS_NORM": True, "BLOCK_HALF": 32},
    )
    pages = [x, x, "i32", "i32", "i32", INT, "i32", INT, INT]
    for mode in (attention.Mode.CAUSAL, attention.Mode.MASKED) if dtype == "bf16" else (attention.Mode.CAUSAL,):
        yield (
            attention._canvas_attention_kernel,
            [x, "i32", x, x, "i32", *pages, "*u8", "i32", "i32", x, "i32", "fp32", "i32"],
            {"MODE": int(mode), "GROUP": 3, "PAGE": 64, "BLOCK_M": 32, "BLOCK_N": 16, "BLOCK_D": 64, "WIDEN": False},
        )


def main():
    for dtype in ("bf16", "fp32"):
        for kernel, types, constants in kernels(dtype):
            names = kernel.arg_names
            free = [name for name in names if name not in constants]
            assert len(free) == len(types), (kernel.__name__, free, types)
            signature = dict(zip(free, types, strict=True)) | dict.fromkeys(constants, "constexpr")
            source = ASTSource(
                fn=kernel,
                signature={n: signature[n] for n in names},
                constexprs=constants,
                attrs={(i,): [["tt.divisibility", 16]] for i, n in enumerate(names) if n.endswith(ALIGNED)},
            )
            binary = triton.compile(source, target=TARGET)
            print(kernel.__name__, dtype, len(binary.asm["cubin"]))
            assert "sm_90" in binary.asm["ptx"]
            assert binary.metadata.shared <= SHARED, (kernel.__name__, binary.metadata.shared)


if __name__ == "__main__":
    sys.exit(main())
