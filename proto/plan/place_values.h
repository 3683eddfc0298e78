// Where the values of a unit lie, forward and in the backward passes
// (place_unit.h). A part of PlaceUnit.
#ifndef TROUPE_PROTO_PLAN_PLACE_VALUES_H_
#define TROUPE_PROTO_PLAN_PLACE_VALUES_H_

#include <cstdint>
#include <set>
#include <vector>

#include "proto/plan/made_again.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/packing.h"
#include "proto/plan/place_unit.h"
#include "proto/unit.pb.h"

namespace troupe {

class PlacedValues {
 public:
  // `rules` of the table's ops. What is in use only during the forward pass
  // goes to `workspace`, by the ops' numbers. Borrows the table.
  PlacedValues(const UnitTable& table, const std::vector<OpRules>& rules,
               UnitUse use, Packing& workspace);

  TensorPlace At(int tensor) const;
  // Whether it is not kept, but sent back for the backward passes.
  bool IsReturned(int tensor) const { return returned_[tensor]; }
  // In SEGMENT_GRADIENTS. REQUIRES IsReturned.
  void SetReturned(int tensor, int64_t offset_bytes) {
    returned_bytes_[tensor] = offset_bytes;
  }
  Again RunsAgain(int op) const { return made_again_.ops[op]; }

  int64_t output_bytes() const { return output_bytes_; }
  int64_t stash_bytes() const { return stash_bytes_; }
  int64_t segment_bytes() const { return segments_.bytes(); }
  int64_t recomputed_bytes() const { return recomputed_.bytes(); }

 private:
  int ops() const { return table_.ops_size(); }
  bool IsWithin(int tensor) const {
    return table_.tensors(tensor).home() == TensorSpec::WITHIN;
  }
  int Storage(int tensor) const;
  void Share(int tensor, int with);
  bool DiesAt(int tensor, int op) const;
  void ShareStorage();
  bool Crosses(const std::set<int>& times) const {
    return segment_[*times.begin()] != segment_[*times.rbegin()];
  }
  // Whether it is there for the passes of its chunk only (Op.chunk).
  bool IsOfChunk(int tensor) const;
  void PlaceForward(Packing& workspace);
  void PlaceAgain();

  const UnitTable& table_;
  const std::vector<OpRules>& rules_;
  const bool training_;
  const std::vector<int> segment_;  // by op
  std::vector<bool> read_;          // by tensor: by a backward pass
  const std::vector<bool> returned_;
  MadeAgain made_again_;
  // By tensor: the one whose memory it is in, both forward and again.
  std::vector<int> shares_;
  // Of tensors that have memory of their own.
  std::vector<TensorPlace> forward_;
  std::vector<int64_t> again_;           // first byte in RECOMPUTED
  std::vector<int64_t> returned_bytes_;  // by tensor
  Packing segments_;
  Packing recomputed_;
  int64_t output_bytes_ = 0;
  int64_t stash_bytes_ = 0;
};

}  // namespace troupe

#endif  // TROUPE_PROTO_PLAN_PLACE_VALUES_H_
