// A wall clock that steps, for a test in a program of its own: what the code of
// this process reads (absl::Now(), the standard library, gRPC) is the kernel's
// and so much more. The kernel's own waits do not know of it: one until a time
// of a clock that is an hour ahead lasts for an hour, as one in the middle of
// which the clock steps back by an hour does.
#ifndef TROUPE_TESTS_PROTO_BASE_WALL_CLOCK_STEP_H_
#define TROUPE_TESTS_PROTO_BASE_WALL_CLOCK_STEP_H_

#include "absl/time/time.h"

namespace troupe {

// Returns when absl::Now() has noticed, which takes it up to some seconds.
void StepWallClock(absl::Duration by);

}  // namespace troupe

#endif  // TROUPE_TESTS_PROTO_BASE_WALL_CLOCK_STEP_H_
