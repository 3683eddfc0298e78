#include "proto/plan/strategies.h"

#include <algorithm>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "google/protobuf/descriptor.h"
#include "google/protobuf/message.h"
#include "proto/base/check.h"
#include "proto/plan/axes.h"

namespace troupe {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

struct UnitWord {
  const char* word;
  Unit::Kind kind;
};
constexpr UnitWord kUnitWords[] = {{"embedding", Unit::EMBEDDING},
                                   {"blocks", Unit::BLOCK},
                                   {"head", Unit::HEAD}};

bool Names(const std::string& name, int number, Unit::Kind kind) {
  for (const UnitWord& word : kUnitWords) {
    if (name == word.word) return kind == word.kind;
  }
  int named = -1;
  return absl::SimpleAtoi(name, &named) && named == number;
}

// The fields of one message that the other has, too, by their names: set there
// as they are here, or not set.
void CopyFieldsByName(const Message& from, Message& to) {
  const Reflection& get = *from.GetReflection();
  const Reflection& set = *to.GetReflection();
  for (int i = 0; i < from.GetDescriptor()->field_count(); ++i) {
    const FieldDescriptor& field = *from.GetDescriptor()->field(i);
    const FieldDescriptor* const other =
        to.GetDescriptor()->FindFieldByName(field.name());
    if (other == nullptr || field.is_repeated()) continue;
    set.ClearField(&to, other);
    if (!get.HasField(from, &field)) continue;
    switch (field.cpp_type()) {
      case FieldDescriptor::CPPTYPE_INT32:
        set.SetInt32(&to, other, get.GetInt32(from, &field));
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        set.SetBool(&to, other, get.GetBool(from, &field));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        set.SetString(&to, other, get.GetString(from, &field));
        break;
      default:
        CHECK(false) << "a strategy has no " << field.name();
    }
  }
}

}  // namespace

int DealtMost(const ParallelismSpec& parallelism) {
  const auto size = [](int given) { return std::max(given, 1); };
  return size(parallelism.data()) * size(parallelism.batch()) *
         size(parallelism.context());
}

std::vector<Axis> FactorsOf(const ParallelismSpec& parallelism) {
  std::vector<Axis> factors;
  for (Axis& axis : AxesOf(parallelism)) {
    const bool is_factor = axis.name() != "pipeline" && axis.name() != "data" &&
                           axis.name() != "expert";
    if (is_factor && axis.size() > 1) factors.push_back(std::move(axis));
  }
  return factors;
}

ParallelismSpec WithStrategy(const ParallelismSpec& job,
                             const StrategySpec& strategy) {
  ParallelismSpec all = job;
  all.clear_strategies();
  CopyFieldsByName(strategy, all);
  if (!strategy.has_batch()) all.set_batch(1);
  if (!strategy.has_context()) all.set_context(1);
  if (!strategy.has_tensor()) all.set_tensor(1);
  // What is dealt over all that there are is so here, too.
  if (job.zero_size() == DealtMost(job)) all.set_zero_size(DealtMost(all));
  return all;
}

std::string FactorName(const ParallelismSpec& job,
                       const ParallelismSpec& strategy,
                       const std::string& axis) {
  const std::vector<Axis> factors = FactorsOf(job);
  const std::vector<Axis> own = FactorsOf(strategy);
  for (size_t f = 0; f < factors.size() && f < own.size(); ++f) {
    if (factors[f].name() == axis) return own[f].name();
  }
  return axis;
}

void CopySharing(const ParallelismSpec& from, StrategySpec& to) {
  CopyFieldsByName(from, to);
}

void AdoptFirstStrategy(ParallelismSpec& parallelism) {
  if (parallelism.strategies().empty() || !FactorsOf(parallelism).empty()) {
    return;
  }
  auto strategies = std::move(*parallelism.mutable_strategies());
  parallelism = WithStrategy(parallelism, strategies.Get(0));
  *parallelism.mutable_strategies() = std::move(strategies);
}

std::vector<int> StrategyOfUnits(
    const ParallelismSpec& parallelism, const std::vector<Unit::Kind>& units,
    const google::protobuf::RepeatedPtrField<Stage>& stages) {
  std::vector<int> of_units(units.size(), -1);
  const int count = static_cast<int>(units.size());
  for (int s = 0; s < parallelism.strategies_size(); ++s) {
    const StrategySpec& strategy = parallelism.strategies(s);
    if (strategy.has_stage() && strategy.stage() < stages.size()) {
      const Stage& stage = stages.Get(strategy.stage());
      std::fill_n(of_units.begin() + stage.unit(), stage.unit_count(), s);
    }
    for (const std::string& name : strategy.units()) {
      for (int u = 0; u < count; ++u) {
        if (Names(name, u, units[u])) of_units[u] = s;
      }
    }
  }
  return of_units;
}

std::vector<std::string> UnitWords() {
  std::vector<std::string> words;
  for (const UnitWord& word : kUnitWords) words.emplace_back(word.word);
  return words;
}

std::string SharingText(const ParallelismSpec& parallelism) {
  std::vector<std::string> parts;
  const auto add = [&parts](const char* name, int size) {
    if (size > 1) parts.push_back(absl::StrCat(name, ": ", size));
  };
  add("batch", parallelism.batch());
  add("context", parallelism.context());
  if (parallelism.context() > 1) {
    parts.push_back(
        absl::StrCat("context_method: ", parallelism.context_method()));
    add("ulysses_size", parallelism.ulysses_size());
  }
  add("tensor", parallelism.tensor());
  if (parallelism.tensor() > 1) {
    if (parallelism.has_tensor_method()) {
      parts.push_back(
          absl::StrCat("tensor_method: ", parallelism.tensor_method()));
    }
    add("tensor_depth", parallelism.tensor_depth());
    if (parallelism.sequence_parallel()) {
      parts.emplace_back("sequence_parallel: true");
    }
  }
  return parts.empty() ? "1 rank" : absl::StrJoin(parts, ", ");
}

}  // namespace troupe
