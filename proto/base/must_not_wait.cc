#include "proto/base/must_not_wait.h"

#include "proto/base/check.h"

namespace troupe {
namespace {

thread_local int stretches = 0;  // that are open in this thread

}  // namespace

MustNotWait::MustNotWait() { ++stretches; }

MustNotWait::~MustNotWait() { --stretches; }

void CheckMayWait(const char* what) {
  CHECK_EQ(stretches, 0) << what
                         << " while others wait for this thread, as under the "
                            "lock of the scheduler's core";
}

}  // namespace troupe
