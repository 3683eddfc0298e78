#include "worker/doctor/finding.h"

#include "gtest/gtest.h"

namespace troupe {
namespace {

TEST(Finding, IsALineForPeople) {
  EXPECT_EQ(FindingText({.state = FindingState::kWarn,
                         .text = "1024 open files",
                         .advice = "ulimit -n 4096",
                         .check = "file limit"}),
            "warn   file limit        1024 open files: ulimit -n 4096\n");
  EXPECT_EQ(FindingText({.text = "2 cores", .check = "cores"}),
            "ok     cores             2 cores\n");
}

TEST(Finding, IsJsonForPrograms) {
  EXPECT_EQ(FindingsJson({{.state = FindingState::kNone,
                           .text = "no \"driver\" \xff",  // no UTF-8
                           .advice = "mend it",
                           .check = "CUDA"},
                          {.check = "cores"}}),
            R"([
  {
    "check": "CUDA",
    "state": "none",
    "text": "no \"driver\" �",
    "advice": "mend it"
  },
  {
    "check": "cores",
    "state": "ok",
    "text": "",
    "advice": ""
  }
]
)");
  EXPECT_EQ(FindingsJson({}), "[]\n");
}

TEST(Finding, NamesWhatFails) {
  const Finding good = {.check = "cores"};
  const Finding warning = {.state = FindingState::kWarn, .check = "memory"};
  const Finding bad = {.state = FindingState::kFail, .check = "ports"};
  EXPECT_EQ(FailureText({good, warning}), "");
  EXPECT_EQ(FailureText({good, bad}), "1 of 2 checks fails: ports");
  EXPECT_EQ(FailureText({bad, good, bad}), "2 of 3 checks fail: ports, ports");
}

TEST(MemoryText, UsesTheUnitThatFits) {
  EXPECT_EQ(MemoryText(0), "0 B");
  EXPECT_EQ(MemoryText(64 << 10), "64 KiB");
  EXPECT_EQ(MemoryText(1 << 20), "1 MiB");
  EXPECT_EQ(MemoryText(int64_t{3} << 29), "1.5 GiB");
}

}  // namespace
}  // namespace troupe
