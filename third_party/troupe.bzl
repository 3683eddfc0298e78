"""How every C++ target of Troupe is built: one macro for the flags.

troupe_library, troupe_binary, troupe_test are cc_library, cc_binary and
cc_test with the project's warnings; join_libraries compiles the libraries of a
folder together; held_test runs such tests once more on fewer instructions or
threads; troupe_proto makes a cc_library of one .proto file. What is there for
tests only is compiled as tests are.
"""

load(
    "//third_party:precompiled.bzl",
    "precompiled_deps",
    "precompiled_flags",
    "precompiled_headers",
)

COPTS = [
    "-Wall",
    "-Wextra",
    "-Werror",
    "-Wno-unused-parameter",
    "-Wno-sign-compare",
    "-Wno-missing-field-initializers",
]

# What a source is, and how it is compiled. Tests compare, they do not compute:
# what they call is optimised, they are not, but for those that have references
# of their own.
_KINDS = {
    "library": COPTS,
    "test": COPTS + ["-O0", "-U_FORTIFY_SOURCE"],
    "computing_test": COPTS + ["-O1"],
}

# Included by a good part of all sources.
_SYSTEM_HEADERS = [
    "algorithm",
    "cmath",
    "deque",
    "filesystem",
    "fstream",
    "functional",
    "map",
    "memory",
    "optional",
    "set",
    "sstream",
    "string",
    "thread",
    "tuple",
    "vector",
    "absl/container/flat_hash_map.h",
    "absl/status/statusor.h",
    "absl/strings/ascii.h",
    "absl/strings/match.h",
    "absl/strings/numbers.h",
    "absl/strings/str_cat.h",
    "absl/strings/str_format.h",
    "absl/strings/str_join.h",
    "absl/strings/str_split.h",
    "absl/strings/strip.h",
    "absl/synchronization/mutex.h",
    "absl/time/clock.h",
    "absl/time/time.h",
    "absl/types/optional.h",
    "absl/types/span.h",
    "google/protobuf/extension_set.h",
    "google/protobuf/generated_message_reflection.h",
    "google/protobuf/map_entry.h",
    "google/protobuf/message.h",
    "google/protobuf/repeated_field.h",
    "google/protobuf/unknown_field_set.h",
    "nlohmann/json.hpp",
]

# Folders that know no messages; all others would read them for each source.
_WITHOUT_MESSAGES = ("ops", "storage", "proto/base", "third_party", "proto/trust")

def precompiled_kinds(messages = []):
    """Headers of the system and of these messages, for sources of each kind.

    Args:
      messages: troupe_proto targets of this package, by their names.
    """
    for kind, copts in _KINDS.items():
        precompiled_headers(
            name = kind + "_headers",
            testonly = kind != "library",
            copts = copts,
            headers = _SYSTEM_HEADERS + ([] if kind == "library" else [
                "gmock/gmock.h",
                "gtest/gtest.h",
            ]),
            messages = [
                "%s/%s.pb.h" % (native.package_name(), message)
                for message in messages
            ],
            visibility = ["//visibility:public"],
            deps = [":%s_proto" % message for message in messages],
        )

def _compiled(kind, deps):
    """The arguments copts and deps of a target whose sources are of a kind."""
    folder = native.package_name() + "/"
    bare = [f for f in _WITHOUT_MESSAGES if folder.startswith(f + "/")]
    headers = ("third_party" if bare else "proto", kind + "_headers")
    return {
        "copts": _KINDS[kind] + precompiled_flags(*headers),
        "deps": deps + precompiled_deps(*headers),
    }

def _kind_of_test(computes):
    return "computing_test" if computes else "test"

def _test_library(name, computes, deps, **kwargs):
    native.cc_library(
        name = name,
        testonly = True,
        linkstatic = True,
        **dict(kwargs, **_compiled(_kind_of_test(computes), deps))
    )

# As many sources are compiled as one: most of a short one's time is what it
# includes.
_TOGETHER = 8

# The target that has the objects of a folder's libraries, and what the sources of
# one of them are called.
_JOINED = "joined"
_SOURCES = "_sources_to_join"

def _joined_library(name, srcs, deps, visibility = None, hdrs = []):
    """A library whose sources join_libraries() compiles with others.

    Its headers and what they need are its own, so that who may use it and what
    it may use stay as they are for a library that is compiled by itself.
    """
    native.filegroup(
        name = name + _SOURCES,
        srcs = srcs,
        visibility = ["//visibility:private"],
    )
    native.cc_library(
        name = name,
        srcs = select({
            "//third_party:gcc": srcs,
            "//conditions:default": [],
        }),
        hdrs = hdrs,
        copts = COPTS,
        linkstatic = True,
        visibility = visibility,
        deps = deps + [":" + _JOINED],
    )

def join_libraries():
    """Compiles the sources of this folder's libraries, several as one.

    The last line of a BUILD file that has libraries. Most of a short source's time
    is spent on what it includes and on the templates that it uses, which sources
    of one folder share: eight together take about half of their time. What two of
    them have in an anonymous namespace may not have one name. With --config=gcc
    each is compiled by itself, with what its library depends on and no more.
    """
    rules = native.existing_rules()
    joined = sorted([n[:-len(_SOURCES)] for n in rules if n.endswith(_SOURCES)])
    srcs = [s.split(":")[-1] for n in joined for s in rules[n + _SOURCES]["srcs"]]
    private = [s for s in srcs if not s.endswith(".cc")]
    headers = [h.split(":")[-1] for n in joined for h in rules[n]["hdrs"]]
    deps = {d: None for n in joined for d in rules[n]["deps"]}
    own = [":" + n for n in joined + [_JOINED]]
    native.cc_library(
        name = _JOINED,
        srcs = select({
            "//third_party:gcc": [],
            "//conditions:default": headers + private + _joined_sources(
                _JOINED,
                [s for s in srcs if s.endswith(".cc")],
            ),
        }),
        linkstatic = True,
        visibility = ["//visibility:private"],
        **_compiled("library", [d for d in deps if d not in own])
    )

def _joined_sources(name, sources, flags = "", **kwargs):
    """Joins sources, several in one; returns the files that genrules make of them."""
    made = []
    for first in range(0, len(sources), _TOGETHER):
        some = sources[first:first + _TOGETHER]
        if len(some) == 1:
            made.append(some[0])
            continue
        group = "%s_together_%d" % (name, first // _TOGETHER)
        native.genrule(
            name = group,
            srcs = some,
            outs = [group + ".cc"],
            cmd = "$(location //third_party:together) %s $(SRCS) > $@" % flags,
            tools = ["//third_party:together"],
            visibility = ["//visibility:private"],
            **kwargs
        )
        made.append(group + ".cc")
    return made

def troupe_library(
        name,
        srcs = [],
        deps = [],
        copts = [],
        precompiled = True,
        testonly = False,
        computes = False,
        alone = False,
        **kwargs):
    """A cc_library, compiled together with the others of its folder.

    Args:
      name: of the target.
      srcs: as for every rule.
      deps: as for every rule.
      copts: beside the project's; such a library is compiled by itself.
      precompiled: False where what it includes bears no other header before it.
      testonly: whether it is for tests, and compiled as they are.
      computes: whether one for tests is worth optimising.
      alone: whether it is compiled by itself: where a library of another folder
        needs it that libraries of this folder need, and where a program takes
        one of two libraries that define the same.
      **kwargs: as for every rule.
    """

    # Other flags than the headers' would need headers of their own.
    precompiled = precompiled and not copts
    if testonly and precompiled:
        return _test_library(name, computes, srcs = srcs, deps = deps, **kwargs)
    plain = type(srcs) == "list" and type(deps) == "list" and not [
        argument
        for argument in kwargs
        if argument not in ["hdrs", "visibility"]
    ]
    if plain and srcs and precompiled and not testonly and not alone:
        return _joined_library(name, srcs, deps, **kwargs)
    compiled = {"copts": COPTS + copts, "deps": deps}
    if precompiled:
        compiled = _compiled("library", deps)

    # Static only: a shared twin of each would be compiled and linked for nobody.
    native.cc_library(
        name = name,
        srcs = srcs,
        linkstatic = True,
        testonly = testonly,
        **dict(kwargs, **compiled)
    )

def troupe_binary(name, srcs = [], deps = [], testonly = False, **kwargs):
    """A cc_binary; one for tests, such as a benchmark, is compiled as they are."""
    if testonly:
        _test_library(
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
        testonly = testonly,
        **dict(kwargs, **_compiled("library", deps))
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
    compiled = _compiled(
        _kind_of_test(computes),
        deps + ["//third_party:gtest"] +
        (["//third_party:gtest_main"] if main else []),
    )
    native.cc_test(
        name = name,
        srcs = _together(name, srcs),
        size = size,
        copts = compiled["copts"],
        deps = compiled["deps"] + select({
            "//third_party:tsan": ["//tests/sanitize:synchronization"],
            "//conditions:default": [],
        }),
        **kwargs
    )

def _together(name, srcs):
    """The sources of a test, several in one; with --config=gcc they stay apart.

    A test's anonymous namespace is then within one that has its file's name, so
    that the names of a file remain its own; messages and failures name the file.
    Sources that are no tests (not ..._test.cc) are joined as libraries are
    (join_libraries): what they give to others stands outside their anonymous
    namespaces and may use what is within.

    Args:
      name: of the test.
      srcs: its sources and headers, files of its package.

    Returns:
      What stands for srcs.
    """
    tests = [s for s in srcs if s.endswith("_test.cc")]
    others = [s for s in srcs if s.endswith(".cc") and s not in tests]
    joined = [s for s in srcs if not s.endswith(".cc")]
    joined += _joined_sources(name + "_others", others, testonly = True)
    joined += _joined_sources(name, tests, "--names-apart", testonly = True)
    return select({
        "//third_party:gcc": srcs,
        "//conditions:default": joined,
    })

def held_test(name, test, max_isa = None, env = {}, filter = "*", **kwargs):
    """Runs a test that is built anyway once more, held to less by its environment.

    Args:
      name: of this run.
      test: label of a GoogleTest test.
      max_isa: the instructions it is held to, as ops/cpu/instruction_set.h says.
      env: what else holds it, such as OMP_THREAD_LIMIT.
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
        env = dict(env, **({"TROUPE_MAX_ISA": max_isa} if max_isa else {})),
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
        cmd = ("protoc -I. --cpp_out=$(GENDIR) $(location %s)" % source +
               " && $(location //third_party:out_of_line)" +
               " $(location {0}.pb.h) $(location {0}.pb.cc)".format(name)),
        tools = ["//third_party:out_of_line"],
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
