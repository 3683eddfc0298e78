#include "proto/plan/place_unit.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "gtest/gtest.h"
#include "proto/plan/decoding_table.h"
#include "proto/plan/model.h"
#include "proto/plan/ops/op_rules.h"
#include "proto/plan/tensor_spec.h"
#include "tests/proto/plan/gpt2_spec.h"
#include "tests/proto/plan/llama_spec.h"

namespace troupe {
namespace {

using Memory = UnitMemory;

UnitTable TableOf(const ModelSpec& model, int unit, double dropout) {
  const UnitList list = *ModelUnits(
      model, {.sequences = 2, .sequence_length = 5, .dropout = dropout});
  return list.tables[list.units[unit].table()];
}

// Follows a unit through its passes with a model of its memory: each range
// remembers what was written there last, and each read must find what the op
// that made the value, or the gradient, wrote.
class Memories {
 public:
  void Write(const TensorPlace& place, int64_t bytes, const std::string& what) {
    if (!place.exists()) return;
    auto& ranges = memory_[place.memory];
    const int64_t end = place.offset_bytes + bytes;
    for (auto it = ranges.begin(); it != ranges.end();) {
      const bool apart = it->first >= end ||
                         it->first + it->second.first <= place.offset_bytes;
      it = apart ? std::next(it) : ranges.erase(it);
    }
    ranges[place.offset_bytes] = {bytes, what};
  }
  std::string At(const TensorPlace& place) {
    const auto& ranges = memory_[place.memory];
    const auto it = ranges.find(place.offset_bytes);
    return it == ranges.end() ? "nothing" : it->second.second;
  }
  void Forget(UnitMemory memory) { memory_[memory].clear(); }

 private:
  std::map<UnitMemory, std::map<int64_t, std::pair<int64_t, std::string>>>
      memory_;
};

struct Case {
  std::string name;
  ModelSpec model;
  int unit = 0;
  double dropout = 0;
};

std::vector<Case> Cases() {
  ModelSpec gpt2 = Gpt2(2, 24, 3);
  ModelSpec llama = Llama({});
  llama.set_attention_bias(true);
  llama.set_mlp_bias(true);
  std::vector<Case> cases;
  for (const int unit : {0, 1, 3}) {
    for (const double dropout : {0.0, 0.1}) {
      cases.push_back({"gpt2", gpt2, unit, dropout});
      cases.push_back({"llama", llama, unit, dropout});
    }
  }
  return cases;
}

int64_t BytesAt(const UnitTable& table, const TensorPlace& place) {
  return BytesOf(table.tensors(place.tensor));
}

// Values: in the order of the forward pass each op finds its inputs, and the
// backward passes find all that they read again.
TEST(PlaceUnit, NoValueIsOverwrittenBeforeItsLastReader) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name + " unit " + std::to_string(c.unit) + " dropout " +
                 std::to_string(c.dropout));
    const UnitTable table = TableOf(c.model, c.unit, c.dropout);
    const UnitPlaces places = PlaceUnit(table, UnitUse::kTraining);
    Memories memory;
    std::map<int, std::string> made;  // by tensor: what its memory must hold
    for (int t = 0; t < table.tensors_size(); ++t) {
      if (MakerOf(table, t) >= 0) continue;
      made[t] = table.tensors(t).name();
    }
    const auto value = [&](const TensorPlace& place) {
      if (MakerOf(table, place.tensor) < 0) return made[place.tensor];
      return memory.At(place);
    };
    for (int i = 0; i < table.ops_size(); ++i) {
      const Op& op = table.ops(i);
      const bool reads = !op.fused() || op.kind() == Op::ADD;
      for (int k = 0; k < op.inputs_size() && reads; ++k) {
        EXPECT_EQ(value(places.ops[i].inputs[k]), made[op.inputs(k).tensor()])
            << i << " " << op.inputs(k).name();
      }
      for (int k = 0; k < op.outputs_size(); ++k) {
        const int tensor = op.outputs(k).tensor();
        const TensorPlace& at = places.ops[i].outputs[k];
        if (op.kind() == Op::DROPOUT && op.fused()) {
          made[tensor] = made[op.inputs(0).tensor()];
          continue;
        }
        made[tensor] = table.tensors(tensor).name();
        memory.Write(at, BytesAt(table, at), made[tensor]);
      }
      // An op reads while it writes, but for what it makes in place.
      for (int k = 0; k < op.inputs_size() && reads; ++k) {
        const TensorPlace& input = places.ops[i].inputs[k];
        bool in_place = false;
        for (const InPlace& pair : RulesOf({table, op}).in_place) {
          in_place |= pair.input == op.inputs(k).name();
        }
        if (in_place) continue;
        EXPECT_EQ(value(input), made[op.inputs(k).tensor()]) << i;
      }
    }
    for (int i = 0; i < table.ops_size(); ++i) {
      const OpView view(table, table.ops(i));
      const OpRules rules = RulesOf(view);
      for (const auto* reads :
           {&rules.backward_input_reads, &rules.backward_weight_reads}) {
        for (const std::string& name : *reads) {
          int k = 0;
          TensorPlace place;
          for (const Op::Operand& input : table.ops(i).inputs()) {
            if (input.name() == name) place = places.ops[i].inputs[k];
            ++k;
          }
          k = 0;
          for (const Op::Operand& output : table.ops(i).outputs()) {
            if (output.name() == name) place = places.ops[i].outputs[k];
            ++k;
          }
          if (place.tensor < 0) continue;
          EXPECT_NE(place.memory, Memory::kWorkspace) << name;
          EXPECT_EQ(value(place), made[place.tensor]) << i << " " << name;
        }
      }
    }
  }
}

// Gradients: each op finds the gradients of its outputs, in both passes, and
// what it is to add; the unit's own input gets one.
TEST(PlaceUnit, NoGradientIsOverwrittenBeforeItsLastReader) {
  for (const Case& c : Cases()) {
    SCOPED_TRACE(c.name + " unit " + std::to_string(c.unit) + " dropout " +
                 std::to_string(c.dropout));
    const UnitTable table = TableOf(c.model, c.unit, c.dropout);
    const UnitPlaces places = PlaceUnit(table, UnitUse::kTraining);
    Memories memory;
    // A place that was written is known by its last writer.
    std::map<std::pair<int, int>, std::string> made;  // by op, input
    const auto write = [&](int op, int input) {
      const TensorPlace& at = places.ops[op].input_gradients[input];
      memory.Write(
          at, BytesAt(table, at),
          "d " + table.tensors(at.tensor).name() + " of " + std::to_string(op));
      made[{op, input}] = memory.At(at);
    };
    const auto expected = [&](const TensorPlace& place, int reader) {
      // The last op behind the reader that wrote a gradient of this tensor.
      std::string found = "nothing";
      for (int op = table.ops_size() - 1; op > reader; --op) {
        for (size_t k = 0; k < places.ops[op].input_gradients.size(); ++k) {
          if (places.ops[op].input_gradients[k] == place) found = made[{op, k}];
        }
      }
      return found;
    };
    const auto given = [](const TensorPlace& place) {
      return !place.exists() || place.memory == Memory::kOutputGradient ||
             place.memory == Memory::kStash;
    };
    bool input_gradient = false;
    for (const int pass : {1, 2}) {
      for (int i = table.ops_size() - 1; i >= 0; --i) {
        const Op& op = table.ops(i);
        const OpPlaces& at = places.ops[i];
        const bool weights = pass == 2 && op.parameters_size() > 0;
        if (pass == 1 || weights || at.makes_gradient_again) {
          for (const TensorPlace& gradient : at.output_gradients) {
            if (given(gradient)) continue;
            if (weights && gradient.memory != Memory::kWeightStash) {
              EXPECT_EQ(gradient.memory, Memory::kWorkspace);
            }
            EXPECT_NE(expected(gradient, i), "nothing") << i;
            EXPECT_EQ(memory.At(gradient), expected(gradient, i)) << i;
          }
        }
        if (pass == 1) {
          for (const TensorPlace& added : at.added_gradients) {
            if (given(added)) continue;
            EXPECT_EQ(memory.At(added), expected(added, i)) << i;
          }
        }
        if (pass == 2 && !at.makes_gradient_again) continue;
        if (op.kind() == Op::EMBED || op.kind() == Op::CROSS_ENTROPY) continue;
        for (int k = 0; k < op.inputs_size(); ++k) {
          const TensorPlace& gradient = at.input_gradients[k];
          if (!gradient.exists()) continue;
          input_gradient |= gradient.memory == Memory::kInputGradient;
          if (gradient.memory == Memory::kOutputGradient) continue;
          write(i, k);
        }
        for (const TensorPlace& gradient : at.output_gradients) {
          bool in_place = given(gradient);
          for (const TensorPlace& written : at.input_gradients) {
            in_place |= written == gradient;
          }
          if (in_place) continue;
          EXPECT_EQ(memory.At(gradient), expected(gradient, i)) << i;
        }
      }
    }
    EXPECT_EQ(input_gradient, c.unit != 0);
  }
}

TEST(PlaceUnit, MemoryIsThatOfTheTensorsThatLieThere) {
  for (const Case& c : Cases()) {
    const UnitTable table = TableOf(c.model, c.unit, c.dropout);
    const UnitPlaces places = PlaceUnit(table, UnitUse::kTraining);
    int64_t stash = 0;
    int64_t weight_stash = 0;
    int64_t workspace = 0;
    const auto grow = [&](const TensorPlace& place) {
      if (!place.exists()) return;
      const int64_t end = place.offset_bytes + BytesAt(table, place);
      EXPECT_EQ(place.offset_bytes % kCacheLineBytes, 0);
      if (place.memory == Memory::kStash) stash = std::max(stash, end);
      if (place.memory == Memory::kWeightStash) {
        weight_stash = std::max(weight_stash, end);
      }
      if (place.memory == Memory::kWorkspace) {
        workspace = std::max(workspace, end);
      }
    };
    for (const OpPlaces& op : places.ops) {
      for (const auto* list : {&op.inputs, &op.outputs, &op.input_gradients,
                               &op.added_gradients, &op.output_gradients}) {
        for (const TensorPlace& place : *list) grow(place);
      }
    }
    EXPECT_LE(stash, places.stash_bytes);
    EXPECT_LT(places.stash_bytes, stash + kCacheLineBytes);
    EXPECT_LE(weight_stash, places.weight_stash_bytes);
    EXPECT_LT(places.weight_stash_bytes, weight_stash + kCacheLineBytes);
    EXPECT_LE(workspace, places.workspace_bytes);
    EXPECT_LT(places.workspace_bytes, workspace + kCacheLineBytes);
  }
}

TEST(PlaceUnit, DecodingKeepsNothing) {
  for (const Case& c : Cases()) {
    if (c.dropout > 0) continue;
    const UnitTable table =
        DecodingTable(TableOf(c.model, c.unit, 0), /*positions=*/7);
    const UnitPlaces places = PlaceUnit(table, UnitUse::kDecoding);
    EXPECT_EQ(places.stash_bytes, 0);
    EXPECT_EQ(places.weight_stash_bytes, 0);
    // Statistics, and what is only kept for the backward of a GELU.
    std::set<std::string> nowhere;
    for (int i = 0; i < table.ops_size(); ++i) {
      EXPECT_NE(table.ops(i).kind(), Op::CROSS_ENTROPY);
      for (int k = 0; k < table.ops(i).outputs_size(); ++k) {
        if (places.ops[i].outputs[k].exists()) continue;
        nowhere.insert(table.tensors(table.ops(i).outputs(k).tensor()).name());
      }
    }
    if (c.unit != 1) continue;
    EXPECT_EQ(
        nowhere,
        c.name == "gpt2"
            ? (std::set<std::string>{"ln_1 mean", "ln_1 rstd", "logsumexp",
                                     "ln_2 mean", "ln_2 rstd", "mlp.c_fc"})
            : (std::set<std::string>{"input_layernorm rstd", "logsumexp",
                                     "post_attention_layernorm rstd"}));
  }
}

}  // namespace
}  // namespace troupe
