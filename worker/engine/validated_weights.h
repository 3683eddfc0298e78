// Weights as the last validation computed with them, outside of a program:
// those that do not rest whole where they are used are brought there once more,
// as VALIDATE does, and lie where it has them. Between programs nothing else is
// in that memory.
//
//   ValidatedWeights weights(state);
//   RETURN_IF_ERROR(weights.Bring(unit));     // a collective under ZeRO 3
//   const UnitWeights where = weights.Of(unit);
#ifndef TROUPE_WORKER_ENGINE_VALIDATED_WEIGHTS_H_
#define TROUPE_WORKER_ENGINE_VALIDATED_WEIGHTS_H_

#include <map>
#include <set>

#include "absl/status/status.h"
#include "proto/program.pb.h"
#include "worker/model/generator.h"
#include "worker/rank/rank_state.h"

namespace troupe {

// REQUIRES that no program runs, and that VALIDATE was the last to do so.
class ValidatedWeights {
 public:
  // Borrows the state. REQUIRES a plan that validates.
  explicit ValidatedWeights(RankState& state);

  // Where they are once they are brought. REQUIRES a unit that the rank
  // validates.
  UnitWeights Of(int unit) const;
  // Of the unit, and of the one that it is tied to; in place of others'. Does
  // nothing where they rest there. What it enqueues may fail later (Outcome).
  // Errors as the instructions'.
  absl::Status Bring(int unit) const;
  // Of all that was brought, `queue` being what the wait for it has returned.
  absl::Status Outcome(const absl::Status& queue) const;

 private:
  // How VALIDATE uses a unit first; indices into its instructions.
  struct Use {
    int own = -1;   // the first FORWARD that reads its weights
    int tied = -1;  // and those of the unit that it is tied to
    std::set<int> brings;
  };

  const Instruction& At(int index) const {
    return validate_.instructions(index);
  }
  // Of what instruction `reader` has as `part`: what brings it there.
  void AddBrings(int reader, Instruction::Part part, std::set<int>& brings);
  void AddWriters(int buffer, int before, std::set<int>& brings);

  RankState& state_;
  const Program& validate_;
  std::map<int, Use> uses_;  // by unit
};

}  // namespace troupe

#endif  // TROUPE_WORKER_ENGINE_VALIDATED_WEIGHTS_H_
