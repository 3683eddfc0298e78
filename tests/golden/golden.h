// Goldens: text that a test compares with what the code makes now. A difference
// is shown line by line, and is either a mistake or a change to look at and
// keep:
//
//   TROUPE_GOLDEN_OUT=$PWD/tests/golden
//   bazel-bin/tests/scheduler/passes/passes_test
//
// writes what the code makes now over the files.
#ifndef TROUPE_TESTS_GOLDEN_GOLDEN_H_
#define TROUPE_TESTS_GOLDEN_GOLDEN_H_

#include <string>

#include "gtest/gtest.h"

namespace troupe {

// Compares with tests/golden/<name>.
::testing::AssertionResult MatchesGolden(const std::string& text,
                                         const std::string& name);

}  // namespace troupe

#endif  // TROUPE_TESTS_GOLDEN_GOLDEN_H_
