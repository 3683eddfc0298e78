// Libraries are compiled with the headers that most of them include precompiled,
// which saves half of the work. Where that no longer fits, g++ reads each
// header again, and only a warning of its and this test tell. (Clang, which
// compiles tests, stops with an error.)
#include "gtest/gtest.h"
#include "tests/style/precompiled.h"

namespace troupe {
namespace {

TEST(Precompiled, LibrariesAreCompiledWithIt) {
  EXPECT_TRUE(LibrariesTakePrecompiledHeaders())
      << "the precompiled headers were not used: third_party/precompiled.bzl "
         "makes them with other flags than third_party/troupe.bzl uses them, "
         "or g++ was upgraded since (bazel clean, without a disk cache)";
}

}  // namespace
}  // namespace troupe
