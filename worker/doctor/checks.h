// The table of what `troupe doctor` looks at. A check needs no cluster, changes
// nothing that lasts, and may take until its time limit (bounded.h).
#ifndef TROUPE_WORKER_DOCTOR_CHECKS_H_
#define TROUPE_WORKER_DOCTOR_CHECKS_H_

#include <functional>
#include <string>
#include <vector>

#include "worker/doctor/finding.h"

namespace troupe {

// The scheduler or worker that the checks are about.
struct CheckSubject {
  int port = 0;                    // to listen on; 0: any
  std::string state_dir = ".";     // of a cluster
  std::string nvme_dir;            // of an nvme tier; empty: there is none
  std::vector<std::string> roots;  // names of those that are installed
  // Of them, those that could be written when the worker started.
  std::vector<std::string> written_roots;
  // It told the scheduler that ranks of its machine reach it by shared memory.
  bool shares_memory = false;
  // Asks the device for something small (device_answers.h); null: there is
  // none.
  std::function<Finding()> device;
};

struct Check {
  std::string name;
  std::function<Finding(const CheckSubject&)> run;
};

// All, in the order of the report.
std::vector<Check> AllChecks();

// Those of what may change while a worker runs and keeps every rank from
// running there, in milliseconds. A full disk of checkpoints is none: jobs go
// on without them until there is room (docs/recovery.md).
std::vector<Check> FastChecks();

}  // namespace troupe

#endif  // TROUPE_WORKER_DOCTOR_CHECKS_H_
