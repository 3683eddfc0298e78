// A check in a process of its own. A disk, a name server or a driver that does
// not answer costs its time limit, and a library that crashes costs one line;
// the other checks go on.
#ifndef TROUPE_WORKER_DOCTOR_BOUNDED_H_
#define TROUPE_WORKER_DOCTOR_BOUNDED_H_

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "worker/doctor/finding.h"

namespace troupe {

// What `check` finds; kFail where it has not answered within `limit`, or ended
// by a signal. Forks: call where this process has one thread. What the check
// changes in memory is lost.
Finding RunBounded(absl::FunctionRef<Finding()> check, absl::Duration limit);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_BOUNDED_H_
