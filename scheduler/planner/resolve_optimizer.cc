#include "scheduler/planner/resolve_optimizer.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "proto/base/status.h"
#include "proto/plan/fields.h"
#include "proto/plan/model.h"
#include "proto/plan/optimizer_rules.h"

namespace troupe {
namespace {

constexpr double kBetas[] = {0.9, 0.95};
constexpr double kLionBetas[] = {0.9, 0.99};
constexpr double kEps = 1e-8;
constexpr double kDecayRate = -0.8;
constexpr double kEps1 = 1e-30;
// Second moments are f32, and what they are divided by must not be zero.
constexpr double kEps1Min = 1e-32;
constexpr double kEps2 = 1e-3;
constexpr double kEmaDecay = 0.999;
// What a step takes is a multiple of 2^-24 (ops/average.h).
constexpr double kEmaDecayMax = 0.999999;
constexpr double kLargeFactor = 1e4;

using Betas = google::protobuf::RepeatedField<double>;

bool AreBetas(const Betas& betas, const double (&wanted)[2]) {
  return std::equal(betas.begin(), betas.end(), std::begin(wanted),
                    std::end(wanted));
}

absl::Status CheckBetas(const std::string& path, const Betas& betas) {
  const std::string field = absl::StrCat(path, ".betas");
  if (betas.size() != 2) {
    return FieldError(field, absl::StrCat(betas.size(),
                                          " numbers; use two, like "
                                          "[0.9, 0.95]"));
  }
  for (const double beta : betas) {
    RETURN_IF_ERROR(
        CheckNumber(field, beta, {.min = 0, .max = 1, .max_open = true}));
  }
  return absl::OkStatus();
}

// Momentum and nesterov, which only sgd has.
absl::Status CheckNoMomentum(const std::string& path,
                             const OptimizerSpec& rule) {
  if (rule.momentum() == 0 && !rule.nesterov()) return absl::OkStatus();
  return FieldError(
      absl::StrCat(path, rule.nesterov() ? ".nesterov" : ".momentum"),
      absl::StrCat("is for sgd; ", rule.name(),
                   " has betas: leave it out, or use name sgd"));
}

absl::Status CheckAdamW(const std::string& path, const OptimizerSpec& rule) {
  RETURN_IF_ERROR(CheckBetas(path, rule.betas()));
  RETURN_IF_ERROR(CheckNumber(absl::StrCat(path, ".eps"), rule.eps(),
                              {.min = 0, .max = 1, .min_open = true}));
  return CheckNoMomentum(path, rule);
}

absl::Status CheckLion(const std::string& path, const OptimizerSpec& rule) {
  RETURN_IF_ERROR(CheckBetas(path, rule.betas()));
  if (rule.eps() != kEps) {
    return FieldError(absl::StrCat(path, ".eps"),
                      "is for adamw; leave it out, or use name adamw");
  }
  return CheckNoMomentum(path, rule);
}

// It does without AdamW's and Lion's fields.
absl::Status CheckMomentum(const std::string& path, const OptimizerSpec& rule) {
  const bool own_betas = !AreBetas(rule.betas(), kBetas);
  if (own_betas || rule.eps() != kEps) {
    return FieldError(absl::StrCat(path, own_betas ? ".betas" : ".eps"),
                      "is for adamw; leave it out, or use name adamw");
  }
  return CheckNumber(absl::StrCat(path, ".momentum"), rule.momentum(),
                     {.min = 0, .max = 1, .max_open = true});
}

absl::Status CheckSgd(const std::string& path, const OptimizerSpec& rule) {
  RETURN_IF_ERROR(CheckMomentum(path, rule));
  if (rule.nesterov() && rule.momentum() == 0) {
    return FieldError(
        absl::StrCat(path, ".nesterov"),
        absl::StrCat("needs ", path, ".momentum above 0; use 0.9"));
  }
  return absl::OkStatus();
}

absl::Status CheckMuon(const std::string& path, const OptimizerSpec& rule) {
  RETURN_IF_ERROR(CheckMomentum(path, rule));
  if (rule.momentum() > 0) return absl::OkStatus();
  return FieldError(absl::StrCat(path, ".momentum"),
                    "muon needs a momentum above 0; use 0.95");
}

// The fields that only adafactor has.
absl::Status CheckNotAdafactor(const std::string& path,
                               const OptimizerSpec& rule) {
  const char* const field = rule.has_decay_rate()        ? ".decay_rate"
                            : rule.has_eps1()            ? ".eps1"
                            : rule.has_eps2()            ? ".eps2"
                            : rule.has_scale_parameter() ? ".scale_parameter"
                                                         : nullptr;
  if (field == nullptr) return absl::OkStatus();
  return FieldError(absl::StrCat(path, field),
                    "is for adafactor; leave it out, or use name adafactor");
}

absl::Status CheckAdafactor(const std::string& path,
                            const OptimizerSpec& rule) {
  const bool own_betas = !AreBetas(rule.betas(), kBetas);
  if (own_betas || rule.eps() != kEps) {
    return FieldError(absl::StrCat(path, own_betas ? ".betas" : ".eps"),
                      own_betas ? "is for adamw; adafactor has decay_rate"
                                : "is for adamw; adafactor has eps1 and eps2");
  }
  if (rule.momentum() != 0 || rule.nesterov()) {
    return FieldError(
        absl::StrCat(path, rule.nesterov() ? ".nesterov" : ".momentum"),
        "is for sgd; adafactor keeps no momentum: leave it out");
  }
  RETURN_IF_ERROR(CheckNumber(absl::StrCat(path, ".decay_rate"),
                              rule.decay_rate(),
                              {.min = -1, .max = 0, .max_open = true}));
  RETURN_IF_ERROR(CheckNumber(absl::StrCat(path, ".eps1"), rule.eps1(),
                              {.min = kEps1Min, .max = 1}));
  return CheckNumber(absl::StrCat(path, ".eps2"), rule.eps2(),
                     {.min = 0, .max = 1});
}

// What can train parameters, and what its settings are where nothing is given.
struct RuleRow {
  const char* name;
  absl::Status (*check)(const std::string& path, const OptimizerSpec& rule);
  const double (&betas)[2];
  double weight_decay;
  double momentum = 0;
  bool nesterov = false;
  bool own_fields = false;  // decay_rate, eps1, eps2, scale_parameter
};
constexpr RuleRow kRules[] = {{.name = "adafactor",
                               .check = CheckAdafactor,
                               .betas = kBetas,
                               .weight_decay = 0,
                               .own_fields = true},
                              {"adamw", CheckAdamW, kBetas, 0.1},
                              {"lion", CheckLion, kLionBetas, 0.1},
                              {"muon", CheckMuon, kBetas, 0.1, 0.95, true},
                              {"sgd", CheckSgd, kBetas, 0}};

// REQUIRES that it is one of RuleNames.
const RuleRow& RowNamed(absl::string_view name) {
  return *std::find_if(std::begin(kRules), std::end(kRules),
                       [name](const RuleRow& row) { return row.name == name; });
}

std::vector<std::string> RuleNames() {
  std::vector<std::string> names;
  for (const RuleRow& row : kRules) names.push_back(row.name);
  return names;
}

// Fills in and checks what a rule of this name needs, but its learning rate.
absl::Status ResolveRule(const std::string& path, OptimizerSpec& rule) {
  const RuleRow& row = RowNamed(rule.name());
  if (rule.betas().empty()) {
    for (const double beta : row.betas) rule.add_betas(beta);
  }
  if (!rule.has_eps()) rule.set_eps(kEps);
  if (!rule.has_weight_decay()) rule.set_weight_decay(row.weight_decay);
  if (!rule.has_momentum()) rule.set_momentum(row.momentum);
  if (!rule.has_nesterov()) rule.set_nesterov(row.nesterov);
  if (row.own_fields) {
    if (!rule.has_decay_rate()) rule.set_decay_rate(kDecayRate);
    if (!rule.has_eps1()) rule.set_eps1(kEps1);
    if (!rule.has_eps2()) rule.set_eps2(kEps2);
    if (!rule.has_scale_parameter()) rule.set_scale_parameter(true);
  } else {
    RETURN_IF_ERROR(CheckNotAdafactor(path, rule));
  }
  RETURN_IF_ERROR(CheckNumber(absl::StrCat(path, ".weight_decay"),
                              rule.weight_decay(),
                              {.min = 0, .max = kLargeFactor}));
  return row.check(path, rule);
}

// What a group says, and where it says nothing what the optimizer does, if
// that has the same name.
OptimizerSpec RuleOfGroup(const OptimizerGroup& group,
                          const OptimizerSpec& optimizer) {
  OptimizerSpec rule;
  if (group.name() == optimizer.name()) rule = optimizer;
  rule.clear_groups();
  rule.set_name(group.name());
  if (!group.betas().empty()) *rule.mutable_betas() = group.betas();
  if (group.has_eps()) rule.set_eps(group.eps());
  if (group.has_momentum()) rule.set_momentum(group.momentum());
  if (group.has_nesterov()) rule.set_nesterov(group.nesterov());
  if (group.has_weight_decay()) rule.set_weight_decay(group.weight_decay());
  if (group.has_decay_rate()) rule.set_decay_rate(group.decay_rate());
  if (group.has_eps1()) rule.set_eps1(group.eps1());
  if (group.has_eps2()) rule.set_eps2(group.eps2());
  if (group.has_scale_parameter()) {
    rule.set_scale_parameter(group.scale_parameter());
  }
  return rule;
}

absl::Status ResolveGroup(const std::string& path,
                          const OptimizerSpec& optimizer,
                          OptimizerGroup& group) {
  RETURN_IF_ERROR(
      CheckPresent({.present = !group.match().empty(),
                    .path = absl::StrCat(path, ".match"),
                    .meaning = "patterns of the parameters' names"}));
  if (!group.has_lr_scale()) group.set_lr_scale(1);
  RETURN_IF_ERROR(
      CheckNumber(absl::StrCat(path, ".lr_scale"), group.lr_scale(),
                  {.min = 0, .max = kLargeFactor, .min_open = true}));
  if (!group.has_name()) group.set_name(optimizer.name());
  RETURN_IF_ERROR(
      CheckName(absl::StrCat(path, ".name"), group.name(), RuleNames()));
  OptimizerSpec rule = RuleOfGroup(group, optimizer);
  RETURN_IF_ERROR(ResolveRule(path, rule));
  *group.mutable_betas() = rule.betas();
  group.set_eps(rule.eps());
  group.set_momentum(rule.momentum());
  group.set_nesterov(rule.nesterov());
  if (!RowNamed(rule.name()).own_fields) return absl::OkStatus();
  group.set_decay_rate(rule.decay_rate());
  group.set_eps1(rule.eps1());
  group.set_eps2(rule.eps2());
  group.set_scale_parameter(rule.scale_parameter());
  return absl::OkStatus();
}

absl::Status ResolveEma(OptimizerSpec& optimizer) {
  if (!optimizer.has_ema()) return absl::OkStatus();
  EmaSpec& ema = *optimizer.mutable_ema();
  if (!ChangesParameters(optimizer)) {
    return FieldError("optimizer.ema",
                      "averages the weights that an optimizer makes, and with "
                      "optimizer.name: none there is none; leave it out");
  }
  if (!ema.has_decay()) ema.set_decay(kEmaDecay);
  if (!ema.has_warmup()) ema.set_warmup(false);
  return CheckNumber("optimizer.ema.decay", ema.decay(),
                     {.min = 0, .max = kEmaDecayMax, .min_open = true});
}

}  // namespace

absl::Status ResolveOptimizer(JobSpec& job) {
  OptimizerSpec& optimizer = *job.mutable_optimizer();
  const bool synthetic = IsSynthetic(job.model());
  if (!optimizer.has_name()) {
    optimizer.set_name(synthetic && !optimizer.has_lr() ? "none" : "adamw");
  }
  std::vector<std::string> names = RuleNames();
  if (synthetic || job.evaluate()) names.push_back("none");
  RETURN_IF_ERROR(CheckName("optimizer.name", optimizer.name(), names));
  if (synthetic && optimizer.groups_size() > 0) {
    return FieldError("optimizer.groups",
                      "parameters of synthetic units have no names; leave it "
                      "out");
  }
  if (synthetic && UpdatesVectors(optimizer, /*rule=*/0)) {
    return FieldError("optimizer.name",
                      absl::StrCat(optimizer.name(),
                                   " goes by the shapes of parameters, and "
                                   "those of synthetic units have none; use "
                                   "adamw"));
  }
  RETURN_IF_ERROR(ResolveEma(optimizer));
  if (!ChangesParameters(optimizer)) return absl::OkStatus();
  const OptimizerRow& row = RowOfRule(optimizer, /*rule=*/0);
  if (row.updates == OptimizerRow::kMatrices) {
    return FieldError("optimizer.name",
                      absl::StrCat(row.name,
                                   " trains matrices only; use adamw, and a "
                                   "group of optimizer.groups with name ",
                                   row.name));
  }
  RETURN_IF_ERROR(CheckPresent({.present = optimizer.has_lr(),
                                .path = "optimizer.lr",
                                .meaning = "the peak learning rate"}));
  RETURN_IF_ERROR(
      CheckNumber("optimizer.lr", optimizer.lr(),
                  {.min = 0, .max = kLargeFactor, .min_open = true}));
  RETURN_IF_ERROR(ResolveRule("optimizer", optimizer));
  for (int g = 0; g < optimizer.groups_size(); ++g) {
    RETURN_IF_ERROR(ResolveGroup(absl::StrCat("optimizer.groups[", g, "]"),
                                 optimizer, *optimizer.mutable_groups(g)));
  }
  return absl::OkStatus();
}

}  // namespace troupe
