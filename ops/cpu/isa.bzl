"""Libraries that are compiled once for each instruction set.

One binary runs on every x86-64 machine and uses what the machine has: the
device picks a copy when it is made (device.cc). Contraction to fused
multiply-adds is on; nothing that reorders sums is, so that loops do what their
sources say.
"""

load("//third_party:troupe.bzl", "troupe_library")

INSTRUCTION_SETS = {
    "baseline": ["-march=x86-64"],
    "avx2": ["-march=x86-64-v3"],
    "avx512": ["-march=x86-64-v4"],
    "avx512_bf16": ["-march=x86-64-v4", "-mavx512bf16"],
}

def isa_library(name, srcs, hdrs, deps):
    """<name>_<instruction set> for each set, and <name> for all of them.

    Args:
      name: of the library that holds all copies.
      srcs: sources whose code is in namespace TROUPE_SIMD.
      hdrs: the plain headers through which others see them.
      deps: of plain headers.
    """
    copies = []
    for instruction_set, flags in INSTRUCTION_SETS.items():
        copies.append(name + "_" + instruction_set)
        troupe_library(
            name = copies[-1],
            srcs = srcs + hdrs,
            copts = [
                "-DTROUPE_SIMD=simd_" + instruction_set,
                "-O3",
                "-ffp-contract=fast",
                "-fno-math-errno",
                "-fno-trapping-math",
            ] + flags,
            deps = deps,
            visibility = ["//visibility:private"],
        )
    troupe_library(
        name = name,
        hdrs = hdrs,
        deps = deps + [":" + copy for copy in copies],
        visibility = ["//ops/cpu:__pkg__"],
    )
