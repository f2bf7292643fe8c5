"""Compiles every kernel for a Hopper card without one; a program, since the tests' process interprets kernels."""

import sys

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from remask.kernels import attention, confidence, confidence_head, rms_norm, rotary

TARGET = GPUTarget("cuda", 90, 32)
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
    yield (
        confidence_head._confidence_head_kernel,
        [x, "i32", x, "i32", LONG, FLOAT, "i32", INT, "i32", "i32", "i32", "i32"],
        {"N_FORBIDDEN": 3, "N_VOCAB": 65536, "BLOCK_M": 16, "BLOCK_N": 128, "BLOCK_K": 64, "WIDEN": False},
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
            source = ASTSource(fn=kernel, signature={n: signature[n] for n in names}, constexprs=constants)
            binary = triton.compile(source, target=TARGET)
            print(kernel.__name__, dtype, len(binary.asm["cubin"]))
            assert "sm_90" in binary.asm["ptx"]


if __name__ == "__main__":
    sys.exit(main())
