// `troupe-worker doctor`: says of this machine what of Troupe works here, what
// does not, and what to do about it. `troupe doctor` prints what it says.
#ifndef TROUPE_WORKER_DOCTOR_RUN_DOCTOR_H_
#define TROUPE_WORKER_DOCTOR_RUN_DOCTOR_H_

#include <iosfwd>
#include <vector>

#include "absl/time/time.h"
#include "worker/doctor/checks.h"

namespace troupe {

struct DoctorOptions {
  CheckSubject subject;
  bool json = false;
  absl::Duration limit = absl::Seconds(10);  // of each check
};

struct DoctorStreams {
  std::ostream& out;  // the findings, as they come, or JSON at the end
  std::ostream& err;  // one line, where a check fails
};

// The process's exit code: 0 if no check fails, else 1.
int RunChecks(const std::vector<Check>& checks, const DoctorOptions& options,
              const DoctorStreams& streams);

// All checks, on stdout and stderr. Call from main's thread, before there are
// others.
int RunDoctor(const DoctorOptions& options);

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_RUN_DOCTOR_H_
