#include "scheduler/layouts/lora.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "proto/base/one_line.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/lora.h"

namespace troupe {
namespace {

constexpr char kLoraField[] = "training.lora.modules";
constexpr size_t kShownMax = 200;

// Names of layers, in their order as text.
struct Layers {
  std::set<std::string> adapted;
  std::set<std::string> all;  // that have weights
  std::set<std::string> experts;
};

Layers LayersOf(const UnitList& units) {
  Layers layers;
  for (const Unit& unit : units.units) {
    for (const Parameter& parameter : unit.parameters()) {
      absl::string_view name = parameter.name();
      if (parameter.adapter()) {
        if (absl::ConsumeSuffix(&name, kLoraDown)) layers.adapted.emplace(name);
      } else if (absl::ConsumeSuffix(&name, ".weight")) {
        layers.all.emplace(name);
        const bool of_experts = parameter.dims_size() > 2;
        if (of_experts) layers.experts.emplace(name);
      }
    }
  }
  return layers;
}

bool NamesAny(const std::string& module, const std::set<std::string>& layers) {
  return std::any_of(
      layers.begin(), layers.end(),
      [&module](const std::string& layer) { return LoraNames(module, layer); });
}

}  // namespace

absl::Status CheckLora(const TrainingSpec& training, const UnitList& units) {
  if (!training.has_lora()) return absl::OkStatus();
  const Layers layers = LayersOf(units);
  for (const std::string& module : training.lora().modules()) {
    const auto refuse = [&module](absl::string_view why) {
      return FieldError(
          kLoraField,
          absl::StrCat("\"", OneLine(module, kShownMax), "\" ", why));
    };
    if (module != kAllLinear && NamesAny(module, layers.experts)) {
      return refuse(
          "names weights of experts, which cannot have adapters; use a longer "
          "name or a pattern that leaves them out");
    }
    if (NamesAny(module, layers.adapted)) continue;
    if (module == kAllLinear) {
      return refuse("names no layer: the model has no linear layers in blocks");
    }
    return refuse(
        NamesAny(module, layers.all)
            ? "names no layer that can have an adapter: these are the linear "
              "layers of blocks, but for those of experts and routers; use "
              "\"all-linear\", or leave the field out"
            : "names no layer of this model; use the last part of a name, as "
              "in \"q_proj\", or \"all-linear\"");
  }
  return absl::OkStatus();
}

}  // namespace troupe
