"""How the sources of tests are compiled: unoptimised, by a compiler of their own.

clang 14 needs less than half of g++'s time for them: it keeps the templates that
the precompiled headers use, where g++ makes all of them again for each source.
So both compilers see all of our headers, too. What is linked with the objects,
all of Troupe, is g++'s. With a sanitizer or to be fuzzed all is compiled by one
compiler, since its runtime is one.
"""

load("@bazel_tools//tools/cpp:toolchain_utils.bzl", "find_cpp_toolchain")
load("//third_party:precompiled.bzl", "PrecompiledInfo")

def _test_sources_impl(ctx):
    compiler = ctx.attr.compiler[cc_common.CcToolchainInfo]
    linker = find_cpp_toolchain(ctx)
    asked = {
        "ctx": ctx,
        "requested_features": ctx.features,
        "unsupported_features": ctx.disabled_features,
    }
    headers = ctx.attr.precompiled[PrecompiledInfo]
    infos = [dep[CcInfo] for dep in ctx.attr.deps]
    sources = [file for file in ctx.files.srcs if file.extension == "cc"]
    context, outputs = cc_common.compile(
        name = ctx.label.name,
        actions = ctx.actions,
        feature_configuration = cc_common.configure_features(
            cc_toolchain = compiler,
            **asked
        ),
        cc_toolchain = compiler,
        srcs = sources,
        public_hdrs = ctx.files.hdrs,
        private_hdrs = [file for file in ctx.files.srcs if file not in sources],
        user_compile_flags = ctx.attr.copts + headers.flags,
        compilation_contexts = [headers.context] +
                               [info.compilation_context for info in infos],
    )
    linking, _ = cc_common.create_linking_context_from_compilation_outputs(
        name = ctx.label.name,
        actions = ctx.actions,
        feature_configuration = cc_common.configure_features(
            cc_toolchain = linker,
            **asked
        ),
        cc_toolchain = linker,
        compilation_outputs = outputs,
        linking_contexts = [info.linking_context for info in infos],
        user_link_flags = ctx.attr.linkopts,
        alwayslink = ctx.attr.alwayslink,
        disallow_dynamic_library = True,
    )
    runfiles = ctx.runfiles(files = ctx.files.data)
    for target in ctx.attr.deps + ctx.attr.data:
        runfiles = runfiles.merge(target[DefaultInfo].default_runfiles)
    return [
        DefaultInfo(files = depset(outputs.objects), runfiles = runfiles),
        CcInfo(compilation_context = context, linking_context = linking),
    ]

test_sources = rule(
    implementation = _test_sources_impl,
    attrs = {
        "srcs": attr.label_list(allow_files = [".cc", ".h"]),
        "hdrs": attr.label_list(allow_files = [".h"]),
        "deps": attr.label_list(providers = [CcInfo]),
        "data": attr.label_list(allow_files = True),
        "copts": attr.string_list(),
        "linkopts": attr.string_list(),
        "alwayslink": attr.bool(),
        "compiler": attr.label(providers = [cc_common.CcToolchainInfo]),
        "precompiled": attr.label(providers = [PrecompiledInfo]),
        "_cc_toolchain": attr.label(
            default = "@bazel_tools//tools/cpp:current_cc_toolchain",
        ),
    },
    fragments = ["cpp"],
    toolchains = ["@bazel_tools//tools/cpp:toolchain_type"],
)
