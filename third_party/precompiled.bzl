"""Headers of the system, read by the compiler once for all sources.

Reading absl, protobuf and, for tests, GoogleTest is most of compiling a source.
g++ keeps what it knows after that in <name>.h.gch, and takes it where the command
line has -include <name>.h, as troupe_library's and troupe_test's do (troupe.bzl).
A source still includes what it uses: with clang there is nothing of this.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

# What is defined where the precompiled one was taken
# (tests/style/precompiled_test.cc asks for it).
_TAKEN = "#define TROUPE_PRECOMPILED\n"

def _precompile(ctx, toolchain, header, text):
    """What g++ takes in place of header: text, compiled."""
    source = ctx.actions.declare_file(ctx.label.name + ".in.h")
    ctx.actions.write(source, text)
    result = ctx.actions.declare_file(header.basename + ".gch")
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
        user_compile_flags = cpp.copts + cpp.cxxopts + ctx.attr.copts +
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
    return result

def _precompiled_headers_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    text = "".join(["#include <%s>\n" % header for header in ctx.attr.headers])
    header = ctx.actions.declare_file(ctx.label.name + ".h")

    # Without a precompiled form the header is empty, so that every source is
    # seen to include what it uses. Clang has another form of such files.
    ctx.actions.write(header, "")
    results = [] if toolchain.compiler == "clang" else [
        _precompile(ctx, toolchain, header, _TAKEN + text),
    ]
    context = cc_common.create_compilation_context(
        headers = depset([header] + results),
    )
    return [CcInfo(compilation_context = context)]

# A library whose header <name>.h stands for all the given ones of the system.
precompiled_headers = rule(
    implementation = _precompiled_headers_impl,
    attrs = {
        "headers": attr.string_list(doc = "as they are included", mandatory = True),
        "copts": attr.string_list(doc = "of those that take it"),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
