#include "proto/plan/segment_use.h"

#include <algorithm>
#include <compare>
#include <iterator>
#include <string>
#include <utility>

#include "proto/base/check.h"
#include "proto/plan/byte_map.h"
#include "proto/plan/exchange_places.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/packing.h"
#include "proto/plan/segments.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

struct Access {
  bool reads = false;
  bool writes = false;
  bool operator==(const Access&) const = default;
};
// Which input or output of the unit, where the memory is one of several. The
// batch is one.
struct MemoryPort {
  UnitMemory memory = UnitMemory::kNone;
  int port = 0;
  auto operator<=>(const MemoryPort&) const = default;
};
MemoryPort PortOf(const TensorPlace& place) {
  const bool one = place.memory == UnitMemory::kBatch;
  return {.memory = place.memory, .port = one ? 0 : place.port};
}
template <typename Value>
using ByMemory = std::map<MemoryPort, ByteMap<Value>>;
using Accesses = ByMemory<Access>;

BytesUsed BytesOf(const UnitTable& table, const TensorPlace& place) {
  const int64_t bytes = BytesOf(table.tensors(place.tensor));
  return {place.offset_bytes, place.offset_bytes + LineAligned(bytes)};
}

// Gathers what the ops of a segment use.
class Uses {
 public:
  Uses(const Unit& unit, const UnitTable& table, const UnitPlaces& places)
      : unit_(unit), table_(table), places_(places) {}

  // In the order in which the ops run: what is written is no longer needed from
  // others.
  void Run(Instruction::Kind kind, const Segment& segment) {
    const bool backward = kind == Instruction::BACKWARD_INPUT ||
                          kind == Instruction::BACKWARD_WEIGHT;
    for (int i = segment.begin; i < segment.end; ++i) {
      const int op = backward ? segment.begin + segment.end - 1 - i : i;
      if (!IsExchange(table_.ops(op).kind())) Run(kind, op);
    }
  }

  // All but the memories.
  SegmentUse& use() { return use_; }
  Accesses& accesses() { return accesses_; }

 private:
  void Run(Instruction::Kind kind, int op) {
    switch (kind) {
      case Instruction::FORWARD:
        return Forward(op);
      case Instruction::RECOMPUTE:
        return Recompute(op);
      case Instruction::BACKWARD_INPUT:
        return BackwardInput(op);
      default:
        CHECK_EQ(kind, Instruction::BACKWARD_WEIGHT);
        return BackwardWeight(op);
    }
  }

  ByteMap<Access>::Range At(const TensorPlace& place) {
    return accesses_[PortOf(place)].At(BytesOf(table_, place));
  }
  static bool OutlivesSegment(const TensorPlace& place) {
    return place.exists() && place.memory != UnitMemory::kWorkspace;
  }
  void Read(const std::vector<TensorPlace>& places) {
    for (const TensorPlace& place : places) {
      if (!OutlivesSegment(place)) continue;
      for (auto& [begin, piece] : At(place)) {
        piece.value.reads |= !piece.value.writes;
      }
    }
  }
  void Write(const std::vector<TensorPlace>& places) {
    for (const TensorPlace& place : places) {
      if (!OutlivesSegment(place)) continue;
      for (auto& [begin, piece] : At(place)) piece.value.writes = true;
    }
  }
  // Values, where RECOMPUTE or a backward pass finds them.
  using Find = TensorPlace (TensorPlace::*)() const;
  void ReadValues(int op, const std::vector<std::string>& names, Find find) {
    const Op& spec = table_.ops(op);
    const OpPlaces& places = places_.ops[op];
    for (const auto& [operands, at] :
         {std::pair(&spec.inputs(), &places.inputs),
          {&spec.outputs(), &places.outputs},
          {&spec.backward_inputs(), &places.backward_inputs}}) {
      for (int i = 0; i < operands->size(); ++i) {
        const std::string& name = operands->Get(i).name();
        if (std::count(names.begin(), names.end(), name) == 0) continue;
        Read({((*at)[i].*find)()});
      }
    }
  }
  void ReadBack(int op, const std::vector<std::string>& names) {
    ReadValues(op, names, &TensorPlace::InBackward);
  }

  std::vector<int> OverwrittenBy(int op, const OpRules& rules) const {
    std::vector<int> inputs;
    const auto& operands = table_.ops(op).inputs();
    for (int i = 0; i < operands.size(); ++i) {
      const auto& names = rules.overwrites;
      if (std::count(names.begin(), names.end(), operands[i].name()) > 0) {
        inputs.push_back(i);
      }
    }
    return inputs;
  }

  std::vector<TensorPlace> OwnGradients(int op, const OpRules& rules) const {
    std::vector<TensorPlace> own;
    for (const int output : OwnGradientsOf(table_.ops(op), rules)) {
      own.push_back(places_.ops[op].output_gradients[output]);
    }
    return own;
  }

  void Forward(int op) {
    const OpRules rules = RulesOf({table_, table_.ops(op)});
    if (rules.only_names) return;
    Read(places_.ops[op].inputs);
    Write(places_.ops[op].outputs);
    for (const int input : OverwrittenBy(op, rules)) {
      Write({places_.ops[op].inputs[input]});
    }
    for (const SumRule& sum : rules.sums) {
      Unit::Addend& addend = use_.sums.emplace_back();
      addend.set_sum(sum.name);
      addend.set_elements(sum.elements);
      addend.set_own(sum.own);
    }
    UseWeights(op);
  }

  void Recompute(int op) {
    const OpPlaces& places = places_.ops[op];
    if (places.again == Again::kNo) return;
    const OpRules rules = RulesOf({table_, table_.ops(op)});
    if (rules.only_names) return;
    if (places.again == Again::kApart) {
      ReadValues(op, rules.apart_reads, &TensorPlace::InRecompute);
    } else {
      for (const TensorPlace& input : places.inputs) {
        Read({input.InRecompute()});
      }
    }
    for (const TensorPlace& output : places.outputs) {
      if (output.again_bytes >= 0) Write({output.InRecompute()});
    }
    for (const int input : OverwrittenBy(op, rules)) {
      Write({places.inputs[input].InRecompute()});
    }
    UseWeights(op);
  }

  void BackwardInput(int op) {
    const OpPlaces& places = places_.ops[op];
    const OpRules rules = RulesOf({table_, table_.ops(op)});
    if (rules.gradients.empty() &&
        !TrainsByOwnGradients(table_.ops(op), rules)) {
      return;
    }
    if (!rules.gradients.empty() &&
        rules.gradients[0].rule == InputGradient::kByForward) {
      return;
    }
    Write(OwnGradients(op, rules));
    Read(places.output_gradients);
    Read(places.added_gradients);
    Read(places.backward_input_gradients);
    ReadBack(op, rules.backward_input_reads);
    for (const InputGradient& gradient : rules.gradients) {
      if (gradient.rule == InputGradient::kOfOutput ||
          gradient.rule == InputGradient::kOfInput) {
        continue;
      }
      const auto& inputs = table_.ops(op).inputs();
      for (int i = 0; i < inputs.size(); ++i) {
        if (inputs[i].name() != gradient.input) continue;
        // Chunks before it have made other rows.
        if (table_.ops(op).chunk().first_row() > 0) {
          Read({places.input_gradients[i]});
        }
        Write({places.input_gradients[i]});
      }
    }
    UseWeights(op);
  }

  void BackwardWeight(int op) {
    const OpPlaces& places = places_.ops[op];
    const OpRules rules = RulesOf({table_, table_.ops(op)});
    if (places.makes_gradient_again) {
      Read(places.output_gradients);
      ReadBack(op, rules.backward_input_reads);
    }
    const Op& spec = table_.ops(op);
    if (!TrainsAny(spec)) return;
    if (rules.weight_reads_gradient) Read({places.output_gradients[0]});
    Read(OwnGradients(op, rules));
    ReadBack(op, rules.backward_weight_reads);
    for (int i = 0; i < spec.parameters_size(); ++i) {
      if (!Trains(spec, i)) continue;
      const bool tied = spec.parameters(i) >= unit_.parameters_size();
      (tied ? use_.tied_gradients : use_.weight_gradients) = true;
    }
  }

  void UseWeights(int op) {
    for (const int parameter : table_.ops(op).parameters()) {
      const bool tied = parameter >= unit_.parameters_size();
      (tied ? use_.tied_weights : use_.weights) = true;
    }
  }

  const Unit& unit_;
  const UnitTable& table_;
  const UnitPlaces& places_;
  Accesses accesses_;
  SegmentUse use_;
};

// The bytes of a unit's memories by what writes them: those of one piece are
// always written together.
struct Written {};
using Writers = ByMemory<Written>;

// Neighbours of one value are one.
template <typename Value, typename Visit>
void VisitRuns(const ByteMap<Value>& map, const Visit& visit) {
  const auto& pieces = map.pieces();
  for (auto piece = pieces.begin(); piece != pieces.end();) {
    const int64_t begin = piece->first;
    const Value value = piece->second.value;
    int64_t end = begin;
    while (piece != pieces.end() && piece->first == end &&
           piece->second.value == value) {
      end = piece->second.end;
      ++piece;
    }
    visit(BytesUsed{begin, end}, value);
  }
}

void AddExchanges(const UnitTable& table, const UnitPlaces& places,
                  Writers& writers) {
  for (int op = 0; op < table.ops_size(); ++op) {
    if (!IsExchange(table.ops(op).kind())) continue;
    for (const auto& [backward, again] :
         {std::pair(false, false), {false, true}, {true, false}}) {
      Instruction::Exchange exchange;
      exchange.set_op(op);
      exchange.set_backward(backward);
      exchange.set_again(again);
      const ExchangePlaces of = PlacesOfExchange(table, places, exchange);
      for (const TensorPlace& place : {of.from, of.to, of.sizes}) {
        if (!place.exists()) continue;
        writers[PortOf(place)].At(BytesOf(table, place));
      }
    }
  }
}

// What is used of a piece is used of all of it.
ByteMap<Access> Widened(const ByteMap<Access>& accesses,
                        const ByteMap<Written>& writers) {
  ByteMap<Access> wide;
  for (const auto& [begin, piece] : accesses.pieces()) {
    BytesUsed bytes = {begin, piece.end};
    auto writer = writers.pieces().upper_bound(begin);
    if (writer != writers.pieces().begin()) --writer;
    for (; writer != writers.pieces().end() && writer->first < piece.end;
         ++writer) {
      if (writer->second.end <= begin) continue;
      bytes.begin = std::min(bytes.begin, writer->first);
      bytes.end = std::max(bytes.end, writer->second.end);
    }
    for (auto& [_, used] : wide.At(bytes)) {
      used.value.reads |= piece.value.reads;
      used.value.writes |= piece.value.writes;
    }
  }
  return wide;
}

SegmentUse Summary(Uses& uses, const Writers& writers) {
  SegmentUse use = std::move(uses.use());
  for (const auto& [at, accesses] : uses.accesses()) {
    const MemoryPort& port = at;
    const auto add = [&](const BytesUsed& bytes, const Access& access) {
      use.memories.push_back({.memory = port.memory,
                              .reads = access.reads,
                              .writes = access.writes,
                              .begin_bytes = bytes.begin,
                              .end_bytes = bytes.end,
                              .port = port.port});
      use.works |= access.writes;
    };
    const auto written = writers.find(at);
    if (written != writers.end() && !written->second.pieces().empty()) {
      VisitRuns(Widened(accesses, written->second), add);
    } else if (!accesses.pieces().empty()) {
      // It comes from elsewhere, all of it.
      add({}, {.reads = true});
    }
  }
  use.works |= !use.sums.empty() || use.weight_gradients || use.tied_gradients;
  return use;
}

}  // namespace

std::map<Instruction::Kind, std::vector<SegmentUse>> SegmentUses(
    const Unit& unit, const UnitTable& table, const UnitPlaces& places) {
  std::map<Instruction::Kind, std::vector<Uses>> gathered;
  Writers writers;
  for (const Instruction::Kind kind : kUnitPasses) {
    for (const Segment& segment : SegmentsOf(table, kind)) {
      Uses& uses = gathered[kind].emplace_back(unit, table, places);
      uses.Run(kind, segment);
      for (const auto& [at, accesses] : uses.accesses()) {
        const MemoryPort& port = at;
        VisitRuns(accesses, [&](const BytesUsed& bytes, const Access& access) {
          if (access.writes) writers[port].At(bytes);
        });
      }
    }
  }
  AddExchanges(table, places, writers);
  std::map<Instruction::Kind, std::vector<SegmentUse>> uses;
  for (auto& [kind, segments] : gathered) {
    for (Uses& of_segment : segments) {
      uses[kind].push_back(Summary(of_segment, writers));
    }
  }
  return uses;
}

}  // namespace troupe
