// SCALARS of one run of a program. A plan whose steps are summed late, or that
// computes ahead, has several copies of them, each of another step
// (docs/plan.md). A run begins those copies at zero to which no run before it
// has added, and what is known when it ends is in the copy of the earliest step
// that it touches. In most plans there is one copy.
//
//   const ProgramScalars scalars(program, memory, step);
//   scalars.Begin(device);
//   ... the program runs ...
//   scalars.Read(device, absl::MakeSpan(sums));
//   RETURN_IF_ERROR(device.Synchronize());
#ifndef TROUPE_WORKER_ENGINE_PROGRAM_SCALARS_H_
#define TROUPE_WORKER_ENGINE_PROGRAM_SCALARS_H_

#include <cstdint>
#include <vector>

#include "absl/types/span.h"
#include "ops/device.h"
#include "proto/program.pb.h"
#include "worker/rank/rank_memory.h"

namespace troupe {

class ProgramScalars {
 public:
  // Of the run of `program` for `step`. A program may have none.
  ProgramScalars(const Program& program, const RankMemory& memory,
                 int64_t step);

  // Enqueued, both. Reads all of Plan.sums into host memory, zeros where the
  // program has no SCALARS.
  void Begin(Device& device) const;
  void Read(Device& device, absl::Span<double> host) const;

 private:
  int64_t bytes_ = 0;
  std::vector<char*> begun_;
  char* known_ = nullptr;
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_PROGRAM_SCALARS_H_
