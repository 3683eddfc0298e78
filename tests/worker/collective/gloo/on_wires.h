// N ranks as N threads that are joined by wires.
#ifndef TROUPE_TESTS_WORKER_COLLECTIVE_GLOO_ON_WIRES_H_
#define TROUPE_TESTS_WORKER_COLLECTIVE_GLOO_ON_WIRES_H_

#include <functional>

#include "worker/collective/gloo/wires.h"

namespace troupe {

// Runs `body` on each rank and joins the threads.
void OnWires(int ranks, const std::function<void(Wires&)>& body);

// Runs `body` within an operation of the wires, as a communicator does.
absl::Status Operation(Wires& wires, const std::function<absl::Status()>& body);

}  // namespace troupe

#endif  // TROUPE_TESTS_WORKER_COLLECTIVE_GLOO_ON_WIRES_H_
