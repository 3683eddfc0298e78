// Where the gradients of a unit's tensors lie in its backward passes
// (place_unit.h). A part of PlaceUnit.
#ifndef TROUPE_PROTO_PLAN_PLACE_GRADIENTS_H_
#define TROUPE_PROTO_PLAN_PLACE_GRADIENTS_H_

#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/packing.h"
#include "proto/plan/place_unit.h"
#include "proto/plan/place_values.h"
#include "proto/unit.pb.h"

namespace troupe {

class PlacedGradients {
 public:
  // `rules` of the table's ops. What is in use only briefly goes to
  // `workspace`: times of backward-input and backward-weight follow those of
  // the forward pass, ops last to first. Borrows all during the call.
  PlacedGradients(const UnitTable& table, const std::vector<OpRules>& rules,
                  const PlacedValues& values, Packing& workspace);

  // Why the gradients cannot be placed (TryPlaceUnit): then there is nothing
  // else to ask.
  const absl::Status& status() const { return status_; }

  // Gradients, and whether backward-weight makes one again: the fields of its
  // places that are not of values.
  void Fill(int op, OpPlaces& places) const;

  int64_t weight_stash_bytes() const { return weight_stash_bytes_; }
  int64_t segment_bytes() const { return segments_.bytes(); }
  // Values that RETURNs bring back: by tensor, where in SEGMENT_GRADIENTS.
  const std::map<int, int64_t>& returned() const { return returned_; }

 private:
  // A gradient, once made.
  struct Gradient {
    int tensor = -1;
    int round = 0;  // of the op that makes it (RoundsOfOps)
    UnitMemory memory = UnitMemory::kNone;  // kNone: not decided yet
    int64_t offset_bytes = 0;
    int port = 0;
    int made_again_by = -1;  // the op that makes it in backward-weight, too
    bool kept = false;       // read by backward-weight
    bool summed = false;     // made by an exchange that sums
    bool in_parts = false;   // each exchange that reads the tensor makes some
    std::set<int> times;
  };
  // As numbers into gradients_, or -1.
  struct OfOp {
    std::vector<int> inputs;
    std::vector<int> added;
    std::vector<int> outputs;
    std::vector<int> backward_inputs;
    bool makes_again = false;
  };

  int ops() const { return table_.ops_size(); }
  int TimeOf(int op, int pass) const { return pass * ops() + (ops() - 1 - op); }
  // The first fault is kept.
  void Refuse(int op, absl::string_view why);
  bool IsOwn(int gradient) const;
  bool IsMadeByReader(int op) const;
  int New(int op, int tensor);
  void MakeOfInput(int op, const InputGradient& rule);
  void MakeOwn(int op);
  void ReadInWeightPass(int op, int gradient);
  void KeepWhileSent(int op);
  void Make();
  bool Crosses(const Gradient& gradient) const;
  void Place(Packing& workspace);
  bool ReadsBackward(int op, int tensor) const;
  void PlaceReturned();
  TensorPlace At(int gradient) const;

  const UnitTable& table_;
  const std::vector<OpRules>& rules_;
  const PlacedValues& values_;
  const std::vector<int> segment_;  // by op
  const std::vector<int> rounds_;   // by op
  std::vector<Gradient> gradients_;
  std::vector<int> newest_;  // by tensor: its gradient so far, or -1
  std::vector<OfOp> of_ops_;
  absl::Status status_;
  Packing segments_;
  int64_t weight_stash_bytes_ = 0;
  std::map<int, int64_t> returned_;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PLACE_GRADIENTS_H_
