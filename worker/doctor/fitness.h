// Whether this machine can run a rank now: the fast ones of the doctor's
// checks, which take milliseconds. A worker looks when it registers and before
// it begins a rank, so that a scratch disk that was mounted read-only costs no
// job.
#ifndef TROUPE_WORKER_DOCTOR_FITNESS_H_
#define TROUPE_WORKER_DOCTOR_FITNESS_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "worker/doctor/checks.h"

namespace troupe {

class Fitness {
 public:
  // A disk that does not answer for `limit` is unfit.
  explicit Fitness(CheckSubject subject,
                   std::vector<Check> checks = FastChecks(),
                   absl::Duration limit = absl::Seconds(5));

  // What keeps a rank from running here, a line each, "nvme tier: ...". Empty:
  // nothing. A look that hangs is not joined by another: its thread is left
  // behind, and a caller that looks meanwhile waits for the same one.
  // Thread-safe.
  std::vector<std::string> Look();

 private:
  struct State;
  const std::shared_ptr<State> state_;
  const absl::Duration limit_;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_FITNESS_H_
