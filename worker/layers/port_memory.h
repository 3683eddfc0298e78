// Memory of what a unit may have several of.
#ifndef TROUPE_WORKER_LAYERS_PORT_MEMORY_H_
#define TROUPE_WORKER_LAYERS_PORT_MEMORY_H_

#include <array>

#include "proto/plan/ports.h"

namespace troupe {

// Of what a unit has one or several: inputs, outputs and their gradients. By
// port (proto/plan/ports.h); all other memories have one.
class PortMemory {
 public:
  PortMemory() = default;
  PortMemory(void* first) { at_[0] = first; }  // NOLINT: implicit
  operator void*() const { return at_[0]; }    // NOLINT: implicit
  void*& operator[](int port) { return at_.at(port); }
  void* operator[](int port) const { return at_.at(port); }

 private:
  std::array<void*, kPortsMax> at_ = {};
};

}  // namespace troupe

#endif  // TROUPE_WORKER_LAYERS_PORT_MEMORY_H_
