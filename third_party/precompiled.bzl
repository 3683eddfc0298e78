"""Headers that the compiler reads once for all sources.

Reading absl, protobuf, our messages and, for tests, GoogleTest is most of
compiling a source. clang keeps what it knows after that in a file, <name>.pch,
and takes it where the command line has the flags that are given here: what
troupe.bzl makes does. A source still includes what it uses: with --config=gcc
there is nothing of this.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")

def precompiled_flags(package, name):
    """Flags by which clang takes //package:name, which is precompiled_headers."""
    return select({
        "//third_party:gcc": [],
        "//conditions:default": [
            "-isysroot",
            ".",
            "-include-pch",
            "$(GENDIR)/%s/%s.pch" % (package, name),
        ],
    })

def precompiled_deps(package, name):
    """What a target depends on that has precompiled_flags(package, name)."""
    return select({
        "//third_party:gcc": [],
        "//conditions:default": ["//%s:%s" % (package, name)],
    })

def _precompiled_headers_impl(ctx):
    toolchain = find_cpp_toolchain(ctx)
    source = ctx.actions.declare_file(ctx.label.name + ".in.h")
    result = ctx.actions.declare_file(ctx.label.name + ".pch")
    ctx.actions.write(
        source,
        "".join(["#include <%s>\n" % header for header in ctx.attr.headers] +
                ["#include \"%s\"\n" % header for header in ctx.attr.messages]),
    )
    context = cc_common.merge_cc_infos(
        cc_infos = [dep[CcInfo] for dep in ctx.attr.deps],
    ).compilation_context
    features = cc_common.configure_features(
        ctx = ctx,
        cc_toolchain = toolchain,
        requested_features = ctx.features,
        unsupported_features = ctx.disabled_features,
    )

    # The flags must be those of the sources that take it. Whether it is up to
    # date is Bazel's affair, which goes by contents; a time in it would differ
    # from one checkout to the next.
    cpp = ctx.fragments.cpp
    variables = cc_common.create_compile_variables(
        feature_configuration = features,
        cc_toolchain = toolchain,
        source_file = source.path,
        output_file = result.path,
        quote_include_directories = context.quote_includes,
        user_compile_flags = cpp.copts + cpp.cxxopts + ctx.attr.copts + [
            "-fpch-instantiate-templates",
            "-Xclang",
            "-fno-pch-timestamp",
            "-Xclang",
            "-relocatable-pch",
            "-isysroot",
            "/proc/self/cwd",
            "-x",
            "c++-header",
        ],
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
        # clang writes the absolute paths of headers into it, beginning with
        # this: it is the same in all output folders, which share a cache.
        env = dict(
            cc_common.get_environment_variables(
                variables = variables,
                **action
            ),
            PWD = "/proc/self/cwd",
        ),
        inputs = depset(
            [source],
            transitive = [toolchain.all_files, context.headers],
        ),
        outputs = [result],
        mnemonic = "CppPrecompile",
        progress_message = "Precompiling " + ctx.label.name,
    )
    return [CcInfo(compilation_context = cc_common.create_compilation_context(
        headers = depset([source, result], transitive = [context.headers]),
    ))]

precompiled_headers = rule(
    implementation = _precompiled_headers_impl,
    attrs = {
        "headers": attr.string_list(doc = "the system's", mandatory = True),
        "messages": attr.string_list(doc = "ours"),
        "deps": attr.label_list(doc = "who has those", providers = [CcInfo]),
        "copts": attr.string_list(doc = "of those that take it"),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
