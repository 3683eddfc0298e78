#include "proto/plan/segments.h"

#include <algorithm>
#include <array>

#include "proto/base/check.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/tensor_spec.h"

namespace troupe {
namespace {

bool Moves(const Op& op, bool backward) {
  return (backward ? op.exchange().backward() : op.exchange().forward()) !=
         COLLECTIVE_UNSPECIFIED;
}

std::vector<Segment> CutAtExchanges(const UnitTable& table, bool backward) {
  std::vector<Segment> segments = {{}};
  for (int op = 0; op < table.ops_size(); ++op) {
    if (!Moves(table.ops(op), backward)) continue;
    segments.back().end = op;
    if (!backward) segments.back().exchange = op;
    segments.push_back({.begin = op + 1});
    if (backward) segments.back().exchange = op;
  }
  segments.back().end = table.ops_size();
  return segments;
}

// Gathers what the ops of a segment use.
class Uses {
 public:
  Uses(const Unit& unit, const UnitTable& table, const UnitPlaces& places)
      : unit_(unit), table_(table), places_(places) {}

  SegmentUse Run(Instruction::Kind kind, const Segment& segment) {
    for (int op = segment.begin; op < segment.end; ++op) {
      if (table_.ops(op).kind() == Op::EXCHANGE) continue;
      switch (kind) {
        case Instruction::FORWARD:
          Forward(op);
          break;
        case Instruction::RECOMPUTE:
          Recompute(op);
          break;
        case Instruction::BACKWARD_INPUT:
          BackwardInput(op);
          break;
        default:
          CHECK_EQ(kind, Instruction::BACKWARD_WEIGHT);
          BackwardWeight(op);
      }
    }
    for (int m = 0; m < kUnitMemories; ++m) {
      const auto memory = static_cast<UnitMemory>(m);
      if (memory == UnitMemory::kNone || memory == UnitMemory::kWorkspace) {
        continue;
      }
      const MemoryUse& use = uses_[m];
      if (!use.reads && !use.writes) continue;
      use_.memories.push_back(use);
      use_.memories.back().memory = memory;
      use_.works |= use.writes;
    }
    use_.works |= use_.totals || use_.weight_gradients || use_.tied_gradients;
    return std::move(use_);
  }

 private:
  MemoryUse& At(const TensorPlace& place) {
    MemoryUse& use = uses_[static_cast<int>(place.memory)];
    if (place.tensor < 0) return use;
    const int64_t end =
        place.offset_bytes + BytesOf(table_.tensors(place.tensor));
    const bool first = use.end_bytes == 0;
    use.begin_bytes = first ? place.offset_bytes
                            : std::min(use.begin_bytes, place.offset_bytes);
    use.end_bytes = std::max(use.end_bytes, end);
    return use;
  }
  void Read(const std::vector<TensorPlace>& places) {
    for (const TensorPlace& place : places) At(place).reads = true;
  }
  // A value, in a backward pass.
  void ReadBack(const TensorPlace& place) {
    At(place.InBackward()).reads = true;
  }
  void Write(const std::vector<TensorPlace>& places) {
    for (const TensorPlace& place : places) At(place).writes = true;
  }
  void ReadValues(int op, const std::vector<std::string>& names) {
    const Op& spec = table_.ops(op);
    for (const std::string& name : names) {
      for (int i = 0; i < spec.inputs_size(); ++i) {
        if (spec.inputs(i).name() == name) ReadBack(places_.ops[op].inputs[i]);
      }
      for (int i = 0; i < spec.outputs_size(); ++i) {
        if (spec.outputs(i).name() == name) {
          ReadBack(places_.ops[op].outputs[i]);
        }
      }
    }
  }

  void Forward(int op) {
    Read(places_.ops[op].inputs);
    Write(places_.ops[op].outputs);
    // Its gradient takes the place of the logits.
    if (table_.ops(op).kind() == Op::CROSS_ENTROPY) {
      use_.totals = true;
      Write({places_.ops[op].inputs[0]});
    }
    UseWeights(op);
  }

  void Recompute(int op) {
    const OpPlaces& places = places_.ops[op];
    if (places.again == Again::kNo) return;
    if (places.again == Again::kApart) {
      ReadValues(op, RulesOf({table_, table_.ops(op)}).apart_reads);
    } else {
      for (const TensorPlace& input : places.inputs) ReadBack(input);
    }
    for (const TensorPlace& output : places.outputs) {
      if (output.again_bytes >= 0) Write({output.InBackward()});
    }
    if (table_.ops(op).kind() == Op::CROSS_ENTROPY) {
      Write({places.inputs[0].InBackward()});
    }
    UseWeights(op);
  }

  void BackwardInput(int op) {
    const OpPlaces& places = places_.ops[op];
    const OpRules rules = RulesOf({table_, table_.ops(op)});
    if (rules.gradients.empty() ||
        rules.gradients[0].rule == InputGradient::kByForward) {
      return;
    }
    Read(places.output_gradients);
    Read(places.added_gradients);
    ReadValues(op, rules.backward_input_reads);
    for (const InputGradient& gradient : rules.gradients) {
      const bool made = gradient.rule != InputGradient::kOfOutput &&
                        gradient.rule != InputGradient::kOfInput;
      if (made) Write(places.input_gradients);
    }
    UseWeights(op);
  }

  void BackwardWeight(int op) {
    const OpPlaces& places = places_.ops[op];
    const OpRules rules = RulesOf({table_, table_.ops(op)});
    if (places.makes_gradient_again) {
      Read(places.output_gradients);
      ReadValues(op, rules.backward_input_reads);
    }
    if (table_.ops(op).parameters().empty()) return;
    Read({places.output_gradients[0]});
    ReadValues(op, rules.backward_weight_reads);
    for (const int parameter : table_.ops(op).parameters()) {
      const bool tied = parameter >= unit_.parameters_size();
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
  std::array<MemoryUse, kUnitMemories> uses_ = {};
  SegmentUse use_;
};

}  // namespace

std::vector<Segment> ForwardSegments(const UnitTable& table) {
  return CutAtExchanges(table, /*backward=*/false);
}

std::vector<Segment> BackwardSegments(const UnitTable& table) {
  return CutAtExchanges(table, /*backward=*/true);
}

std::vector<Segment> SegmentsOf(const UnitTable& table,
                                Instruction::Kind kind) {
  const bool backward = kind == Instruction::BACKWARD_INPUT ||
                        kind == Instruction::BACKWARD_WEIGHT;
  return CutAtExchanges(table, backward);
}

ExchangePlaces PlacesOfExchange(const OpPlaces& op,
                                const Instruction::Exchange& exchange) {
  TensorPlace from = op.inputs[0];
  TensorPlace to = op.outputs[0];
  if (exchange.backward()) {
    from = op.output_gradients[0];
    to = op.input_gradients[0];
  } else if (exchange.again()) {
    from = from.InBackward();
    to = to.InBackward();
  }
  return {.from = from,
          .to = to,
          .in_place =
              from.memory == to.memory && from.offset_bytes == to.offset_bytes};
}

SegmentUse UseOf(const Unit& unit, const UnitTable& table,
                 const UnitPlaces& places, Instruction::Kind kind,
                 const Segment& segment) {
  return Uses(unit, table, places).Run(kind, segment);
}

}  // namespace troupe
