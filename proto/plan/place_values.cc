#include "proto/plan/place_values.h"

#include <algorithm>
#include <set>
#include <utility>

#include "proto/plan/ports.h"
#include "proto/plan/segments.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

// From the first time to the last.
std::set<int> Throughout(const std::set<int>& times) {
  std::set<int> all;
  for (int m = *times.begin(); m <= *times.rbegin(); ++m) all.insert(m);
  return all;
}

// When ops run again, and backward passes read what they make: those of later
// rounds right before the backward pass of their round, the last round first;
// all others before that.
class AgainTimes {
 public:
  explicit AgainTimes(const UnitTable& table)
      : ops_(table.ops_size()),
        rounds_(RoundsOfOps(table)),
        last_(rounds_.empty()
                  ? 0
                  : *std::max_element(rounds_.begin(), rounds_.end())) {}

  int OfOp(int op) const { return BeginOf(rounds_[op]) + op; }
  // The end of the backward pass of what the op makes.
  int OfBackward(int op) const {
    const int round = rounds_[op];
    return round > 0 ? BeginOf(round) + ops_ : BeginOf(0) + ops_ + Later();
  }

 private:
  int Later() const { return last_ * (ops_ + 1); }
  int BeginOf(int round) const {
    return round == 0 ? 0 : ops_ + 1 + (last_ - round) * (ops_ + 1);
  }

  const int ops_;
  const std::vector<int> rounds_;
  const int last_;
};

}  // namespace

PlacedValues::PlacedValues(const UnitTable& table,
                           const std::vector<OpRules>& rules, UnitUse use,
                           Packing& workspace)
    : table_(table),
      rules_(rules),
      training_(use == UnitUse::kTraining),
      segment_(SegmentNumbers(table, /*backward=*/false)),
      read_(training_ ? ReadByBackward(table, rules)
                      : std::vector<bool>(table.tensors_size(), false)),
      returned_(ReturnedInBackward(table)),
      made_again_(WhatIsMadeAgain(table, rules, read_)),
      returned_bytes_(table.tensors_size(), -1) {
  ShareStorage();
  PlaceForward(workspace);
  PlaceAgain();
}

TensorPlace PlacedValues::At(int tensor) const {
  if (tensor < 0) return {};
  TensorPlace place = forward_[Storage(tensor)];
  place.tensor = tensor;
  if (made_again_.tensors[tensor]) place.again_bytes = again_[Storage(tensor)];
  place.returned_bytes = returned_bytes_[tensor];
  return place;
}

int PlacedValues::Storage(int tensor) const {
  while (shares_[tensor] != tensor) tensor = shares_[tensor];
  return tensor;
}

// The tensor with a home outside of the unit gives the memory.
void PlacedValues::Share(int tensor, int with) {
  int from = Storage(tensor);
  int to = Storage(with);
  if (!IsWithin(from)) std::swap(from, to);
  shares_[from] = to;
}

// Whether nobody needs the value once this op has read it.
bool PlacedValues::DiesAt(int tensor, int op) const {
  const int storage = Storage(tensor);
  for (int t = 0; t < table_.tensors_size(); ++t) {
    if (Storage(t) != storage) continue;
    if (read_[t] || !IsWithin(t)) return false;
    for (int later = op + 1; later < ops(); ++later) {
      for (const Op::Operand& input : table_.ops(later).inputs()) {
        if (input.tensor() == t) return false;
      }
    }
  }
  return true;
}

void PlacedValues::ShareStorage() {
  for (int t = 0; t < table_.tensors_size(); ++t) shares_.push_back(t);
  for (int op = 0; op < ops(); ++op) {
    const OpView view(table_, table_.ops(op));
    for (const InPlace& pair : rules_[op].in_place) {
      const int input = view.Input(pair.input);
      if (pair.same || DiesAt(input, op)) {
        Share(input, view.Output(pair.output));
      }
    }
  }
}

bool PlacedValues::IsOfChunk(int tensor) const {
  const int maker = training_ ? MakerOf(table_, tensor) : -1;
  return maker >= 0 && table_.ops(maker).has_chunk();
}

void PlacedValues::PlaceForward(Packing& workspace) {
  forward_.resize(table_.tensors_size());
  std::vector<bool> kept(table_.tensors_size(), false);
  std::vector<bool> used(table_.tensors_size(), false);
  std::vector<std::set<int>> times(table_.tensors_size());
  for (int t = 0; t < table_.tensors_size(); ++t) {
    if (!read_[t]) continue;
    used[Storage(t)] = true;
    if (made_again_.tensors[t] || returned_[t] || IsOfChunk(t)) continue;
    kept[Storage(t)] = true;
  }
  for (int op = 0; op < ops(); ++op) {
    // A neighbour does the work of a fused op. Its output is written by the op
    // before it.
    const bool fused = table_.ops(op).fused();
    const bool reads = !fused || rules_[op].fusion.reads;
    for (const Op::Operand& input : table_.ops(op).inputs()) {
      times[Storage(input.tensor())].insert(op);
      if (reads) used[Storage(input.tensor())] = true;
    }
    for (const Op::Operand& output : table_.ops(op).outputs()) {
      times[Storage(output.tensor())].insert(fused ? op - 1 : op);
    }
    for (const std::string& output : rules_[op].always_written) {
      used[Storage(OpView(table_, table_.ops(op)).Output(output))] = true;
    }
    // What it brings does not wait for the memory of what is read meanwhile.
    const int meanwhile = ComputesMeanwhile(table_, op);
    if (meanwhile < 0) continue;
    times[Storage(table_.ops(op).outputs(0).tensor())].insert(meanwhile);
  }
  for (int t = 0; t < table_.tensors_size(); ++t) {
    if (Storage(t) != t) continue;
    TensorPlace& place = forward_[t];
    const int64_t bytes = LineAligned(BytesOf(table_.tensors(t)));
    switch (table_.tensors(t).home()) {
      case TensorSpec::INPUT:
        place.memory = UnitMemory::kInput;
        place.port = PortOf(table_, t);
        continue;
      case TensorSpec::OUTPUT:
        place.memory = UnitMemory::kOutput;
        place.port = PortOf(table_, t);
        output_bytes_ += bytes;
        continue;
      case TensorSpec::BATCH:
        place.memory = UnitMemory::kBatch;
        place.port = PortOf(table_, t);
        continue;
      default:
        break;
    }
    if (kept[t]) {
      place.memory = UnitMemory::kStash;
      place.offset_bytes = stash_bytes_;
      stash_bytes_ += bytes;
    } else if (used[t]) {
      const SizedLife life = {.bytes = bytes, .times = Throughout(times[t])};
      // Decoding does all segments in one call.
      const bool crosses =
          training_ && (Crosses(life.times) || (read_[t] && IsOfChunk(t)));
      place.memory =
          crosses ? UnitMemory::kSegmentValues : UnitMemory::kWorkspace;
      place.offset_bytes = (crosses ? segments_ : workspace).Add(life);
    }
  }
}

// What a backward pass reads lives until then; the rest briefly.
void PlacedValues::PlaceAgain() {
  again_.resize(table_.tensors_size());
  const AgainTimes of(table_);
  std::vector<std::set<int>> times(table_.tensors_size());
  for (int op = 0; op < ops(); ++op) {
    const Again again = made_again_.ops[op];
    if (again == Again::kNo) continue;
    const auto use = [&](int tensor, int time) {
      if (made_again_.tensors[tensor]) times[Storage(tensor)].insert(time);
    };
    for (const int input : ReadAgain(table_, op, rules_[op], again)) {
      use(input, of.OfOp(op));
    }
    const bool fused = table_.ops(op).fused();
    for (const Op::Operand& output : table_.ops(op).outputs()) {
      use(output.tensor(), of.OfOp(fused ? op - 1 : op));
      const bool lives = read_[output.tensor()] && !returned_[output.tensor()];
      if (lives) use(output.tensor(), of.OfBackward(op));
    }
  }
  for (int t = 0; t < table_.tensors_size(); ++t) {
    if (times[t].empty()) continue;
    again_[t] =
        recomputed_.Add({.bytes = LineAligned(BytesOf(table_.tensors(t))),
                         .times = Throughout(times[t])});
  }
}

}  // namespace troupe
