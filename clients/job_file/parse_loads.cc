#include "clients/job_file/parse_loads.h"

#include <map>

#include "absl/strings/str_cat.h"
#include "nlohmann/json.hpp"
#include "proto/base/status.h"

namespace troupe {
namespace {

using Json = nlohmann::json;

absl::Status Error(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat(
      what,
      "; want what /api/v1/jobs/ID/experts answers: {\"points\": "
      "[{\"first\", \"last\", \"layers\": [{\"unit\", \"load\"}]}]}"));
}

bool IsStep(const Json& point, const char* name) {
  return point.contains(name) && point[name].is_number_integer();
}

// Of one layer.
struct Sum {
  double steps = 0;
  std::vector<double> load;  // by expert, times the steps
};
using Sums = std::map<int, Sum>;  // by unit

absl::Status AddLayer(const Json& layer, double steps, Sums& sums) {
  const bool known = layer.is_object() && layer.contains("unit") &&
                     layer["unit"].is_number_integer() &&
                     layer.contains("load") && layer["load"].is_array();
  if (!known) return Error("a layer has no \"unit\" or no \"load\"");
  const int unit = layer["unit"].get<int>();
  Sum& sum = sums[unit];
  if (sum.load.empty()) sum.load.resize(layer["load"].size());
  if (sum.load.size() != layer["load"].size()) {
    return Error(absl::StrCat("unit ", unit, " has ", sum.load.size(),
                              " experts in one point and ",
                              layer["load"].size(), " in another"));
  }
  sum.steps += steps;
  for (size_t expert = 0; expert < sum.load.size(); ++expert) {
    const Json& load = layer["load"][expert];
    if (!load.is_number() || !(load.get<double>() >= 0)) {
      return Error(absl::StrCat("the load of expert ", expert, " of unit ",
                                unit, " is no number of at least 0"));
    }
    sum.load[expert] += steps * load.get<double>();
  }
  return absl::OkStatus();
}

absl::Status AddPoint(const Json& point, Sums& sums) {
  const bool known = point.is_object() && IsStep(point, "first") &&
                     IsStep(point, "last") && point.contains("layers") &&
                     point["layers"].is_array();
  if (!known) {
    return Error("a point has no \"first\", \"last\" or \"layers\"");
  }
  const double steps =
      point["last"].get<double>() - point["first"].get<double>() + 1;
  if (steps < 1) return Error("a point ends before it begins");
  for (const Json& layer : point["layers"]) {
    RETURN_IF_ERROR(AddLayer(layer, steps, sums));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::vector<MeasuredLoad>> ParseLoads(absl::string_view json) {
  const Json all = Json::parse(json.begin(), json.end(), /*cb=*/nullptr,
                               /*allow_exceptions=*/false);
  if (all.is_discarded()) return Error("is no JSON");
  if (!all.is_object() || !all.contains("points") ||
      !all["points"].is_array()) {
    return Error("has no \"points\"");
  }
  Sums sums;
  for (const Json& point : all["points"]) {
    RETURN_IF_ERROR(AddPoint(point, sums));
  }
  if (sums.empty()) return Error("has no load of any layer");
  std::vector<MeasuredLoad> loads;
  for (const auto& [unit, sum] : sums) {
    MeasuredLoad& load = loads.emplace_back();
    load.set_unit(unit);
    for (const double times_steps : sum.load) {
      load.add_load(times_steps / sum.steps);
    }
  }
  return loads;
}

}  // namespace troupe
