"""How every C++ target of Troupe is built: one macro for the flags.

troupe_library, troupe_binary, troupe_test are cc_library, cc_binary and
cc_test with the project's warnings; held_test runs such tests once more on
fewer instructions; troupe_proto makes a cc_library of one .proto file. What is
there for tests only is compiled as tests are (test_sources.bzl).
"""

load("//third_party:precompiled.bzl", "precompiled_flags")
load("//third_party:test_sources.bzl", "test_sources")

COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-parameter",
    "-Wno-sign-compare",
    "-Wno-missing-field-initializers",
]

# Tests compare, they do not compute: what they call is optimised, they are not,
# but for those that have references of their own.
TEST_COPTS = COPTS + [
    "-O0",
    "-U_FORTIFY_SOURCE",
]
COMPUTING_TEST_COPTS = COPTS + ["-O1"]

def _library_headers(copts):
    """Flags of a library, or a program, that takes precompiled headers."""
    return copts + select({
        "//third_party:clang": [],
        "//conditions:default": precompiled_flags("library_headers"),
    })

# What compiles tests.
TEST_COMPILER = select({
    "//third_party:one_compiler": "@bazel_tools//tools/cpp:current_cc_toolchain",
    "//conditions:default": "//third_party/clang",
})

def _test_sources(name, computes, **kwargs):
    headers = "computing_test_headers" if computes else "test_headers"
    test_sources(
        name = name,
        testonly = True,
        compiler = TEST_COMPILER,
        copts = COMPUTING_TEST_COPTS if computes else TEST_COPTS,
        precompiled = "//third_party:" + headers,
        **kwargs
    )

def troupe_library(
        name,
        copts = [],
        deps = [],
        precompiled = True,
        testonly = False,
        computes = False,
        **kwargs):
    """A cc_library.

    Args:
      name: of the target.
      copts: beside the project's.
      deps: as for every rule.
      precompiled: False where what it includes bears no other header before it.
      testonly: whether it is for tests, and compiled as they are.
      computes: whether one for tests is worth optimising.
      **kwargs: as for every rule.
    """

    # Other flags than the headers' would need headers of their own.
    precompiled = precompiled and not copts
    if testonly and precompiled:
        return _test_sources(name, computes, deps = deps, **kwargs)

    # Static only: a shared twin of each would be compiled and linked for nobody.
    native.cc_library(
        name = name,
        copts = _library_headers(COPTS) if precompiled else COPTS + copts,
        linkstatic = True,
        deps = deps + (["//third_party:library_headers"] if precompiled else []),
        testonly = testonly,
        **kwargs
    )

def troupe_binary(name, srcs = [], deps = [], testonly = False, **kwargs):
    """A cc_binary; one for tests, such as a benchmark, is compiled as they are."""
    if testonly:
        _test_sources(
            name + "_sources",
            computes = True,
            srcs = srcs,
            deps = deps,
            alwayslink = True,
            visibility = ["//visibility:private"],
        )
        srcs, deps = [], [":" + name + "_sources"]
    native.cc_binary(
        name = name,
        srcs = srcs,
        copts = _library_headers(COPTS),
        deps = deps + ["//third_party:library_headers"],
        testonly = testonly,
        **kwargs
    )

def troupe_test(
        name,
        srcs = [],
        deps = [],
        size = "small",
        main = True,
        computes = False,
        **kwargs):
    """A GoogleTest test.

    Args:
      name: of the target.
      srcs: as for every rule.
      deps: as for every rule.
      size: as for every test.
      main: whether the main function comes with it.
      computes: whether it is worth optimising.
      **kwargs: as for every test.
    """
    compatible = {
        key: value
        for key, value in kwargs.items()
        if key in ["target_compatible_with"]
    }
    _test_sources(
        name + "_sources",
        computes,
        srcs = srcs,
        deps = deps + ["//third_party:gtest"],
        alwayslink = True,
        visibility = ["//visibility:private"],
        **compatible
    )
    native.cc_test(
        name = name,
        size = size,
        deps = [":" + name + "_sources"] +
               (["//third_party:gtest_main"] if main else []) + select({
            "//third_party:tsan": ["//tests/sanitize:synchronization"],
            "//conditions:default": [],
        }),
        **kwargs
    )

def held_test(name, test, max_isa, filter = "*", **kwargs):
    """Runs a test that is built anyway once more, on fewer instructions.

    Args:
      name: of this run.
      test: label of a GoogleTest test.
      max_isa: what it is held to, as ops/cpu/instruction_set.h says.
      filter: of its tests, those that depend on it (--gtest_filter).
      **kwargs: as for every test.
    """
    native.sh_test(
        name = name,
        srcs = ["//tests/ops:held.sh"],
        args = [
            "$(location %s)" % test,
            "'--gtest_filter=%s'" % filter,
        ],
        data = [test],
        env = {"TROUPE_MAX_ISA": max_isa},
        **kwargs
    )

def troupe_proto(name, deps = [], grpc = False, visibility = None):
    """A cc_library of <name>.proto, with its gRPC stubs where grpc is True.

    Args:
      name: the .proto file without its ending; the target is <name>_proto.
      deps: the troupe_proto targets whose files it imports.
      grpc: whether it has services; the stubs are in <name>_grpc.
      visibility: as for every rule.
    """
    source = name + ".proto"
    native.filegroup(
        name = name + "_sources",
        srcs = [source] + [dep.replace("_proto", "_sources") for dep in deps],
    )
    native.genrule(
        name = name + "_proto_gen",
        srcs = [
            source,
            ":" + name + "_sources",
        ],
        outs = [name + ".pb.h", name + ".pb.cc"],
        cmd = "protoc -I. --cpp_out=$(GENDIR) $(location %s)" % source,
    )
    native.cc_library(
        name = name + "_proto",
        srcs = [name + ".pb.cc"],
        hdrs = [name + ".pb.h"],
        copts = ["-w"],
        linkstatic = True,
        visibility = visibility,
        deps = deps + ["//third_party:protobuf"],
    )
    if grpc:
        native.genrule(
            name = name + "_grpc_gen",
            srcs = [
                source,
                ":" + name + "_sources",
            ],
            outs = [name + ".grpc.pb.h", name + ".grpc.pb.cc"],
            cmd = ("protoc -I. --grpc_out=$(GENDIR) " +
                   "--plugin=protoc-gen-grpc=$$(command -v grpc_cpp_plugin) " +
                   "$(location %s)" % source),
        )
        native.cc_library(
            name = name + "_grpc",
            srcs = [name + ".grpc.pb.cc"],
            hdrs = [name + ".grpc.pb.h"],
            copts = ["-w"],
            linkstatic = True,
            visibility = visibility,
            deps = [":" + name + "_proto", "//third_party:grpc"],
        )
