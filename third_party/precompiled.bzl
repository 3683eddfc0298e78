"""Headers of the system, read by the compiler once for all sources.

Reading absl, protobuf and, for tests, GoogleTest is most of compiling a source.
A compiler keeps what it knows after that in a file, g++ in <name>.h.gch and
clang in <name>.h.pch, and takes it where the command line has the flags that are
given here: troupe_library's and troupe_test's do (troupe.bzl). A source still
includes what it uses: with --config=clang there is nothing of this.
"""

PrecompiledInfo = provider(
    doc = "Precompiled headers, for rules that compile.",
    fields = {
        "context": "a compilation context with the files",
        "flags": "of a source that takes them",
    },
)

# What is defined where the precompiled one was taken
# (tests/style/precompiled_test.cc asks for it).
_TAKEN = "#define TROUPE_PRECOMPILED\n"

def precompiled_flags(name):
    """Flags by which g++ takes the headers of //third_party:<name> precompiled.

    It does not keep in them which warnings the system's headers have silenced
    about themselves, so that these are off. And it is not to look again and
    again for what of them it no longer needs.

    Args:
      name: of a target of precompiled_headers.

    Returns:
      The flags.
    """
    return [
        "-include",
        "third_party/%s.h" % name,
        "-Winvalid-pch",
        "-Wno-error=invalid-pch",
        "-Wno-array-bounds",
        "-Wno-restrict",
        "-Wno-stringop-overflow",
        "-Wno-stringop-overread",
        "--param=ggc-min-heapsize=1048576",
    ]

def _precompile(ctx, toolchain, result, text, more = []):
    """Makes `result`, what the compiler knows after `text`."""
    source = ctx.actions.declare_file(ctx.label.name + ".in.h")
    ctx.actions.write(source, text)
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )

    # The flags must be those of the sources that take it.
    cpp = ctx.fragments.cpp
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = source.path,
        output_file = result.path,
        user_compile_flags = cpp.copts + cpp.cxxopts + ctx.attr.copts + more +
                             ["-x", "c++-header"],
    )
    action = {
        "action_name": "c++-compile",
        "feature_configuration": features,
    }
    ctx.actions.run(
        executable = cc_common.get_tool_for_action(**action),
        arguments = cc_common.get_memory_inefficient_command_line(
            variables = variables,
            **action
        ),
        env = cc_common.get_environment_variables(
            variables = variables,
            **action
        ),
        inputs = depset([source], transitive = [toolchain.all_files]),
        outputs = [result],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling " + ctx.label.name,
    )
    return [source, result]

def _precompiled_headers_impl(ctx):
    toolchain = ctx.attr.compiler[cc_common.CcToolchainInfo]
    text = "".join(["#include <%s>\n" % header for header in ctx.attr.headers])
    name = ctx.label.name
    if toolchain.compiler == "clang_of_tests":
        result = ctx.actions.declare_file(name + ".h.pch")
        flags = ["-include-pch", result.path]
        files = _precompile(
            ctx,
            toolchain,
            result,
            _TAKEN + text,
            more = ["-fpch-instantiate-templates"],
        )
    elif toolchain.compiler == "clang":
        # Nothing: every source is seen to include what it uses.
        flags, files = [], []
    else:
        header = ctx.actions.declare_file(name + ".h")
        ctx.actions.write(header, "")
        result = ctx.actions.declare_file(name + ".h.gch")
        flags = precompiled_flags(name)
        files = [header] + _precompile(ctx, toolchain, result, _TAKEN + text)
    context = cc_common.create_compilation_context(headers = depset(files))
    return [
        CcInfo(compilation_context = context),
        PrecompiledInfo(context = context, flags = flags),
    ]

# A library whose header <name>.h stands for all the given ones of the system.
precompiled_headers = rule(
    implementation = _precompiled_headers_impl,
    attrs = {
        "headers": attr.string_list(doc = "as they are included", mandatory = True),
        "copts": attr.string_list(doc = "of those that take it"),
        "compiler": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
            providers = [cc_common.CcToolchainInfo],
        ),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
