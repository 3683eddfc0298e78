#include "clients/cli/view/plan_view.h"

#include <algorithm>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/view/exchanges_text.h"
#include "clients/cli/view/experts_text.h"
#include "clients/cli/view/format.h"
#include "clients/cli/view/replicas_text.h"
#include "clients/job_file/print_job.h"
#include "proto/base/glob.h"
#include "proto/plan/copies.h"
#include "proto/plan/find_program.h"
#include "proto/plan/groups.h"
#include "proto/plan/machine_pace.h"
#include "proto/plan/memory.h"
#include "proto/plan/mesh.h"
#include "proto/plan/model.h"
#include "proto/plan/program_text.h"
#include "proto/plan/roles.h"
#include "proto/plan/sharing.h"
#include "proto/plan/strategies.h"

namespace troupe {
namespace {

// Below a line of the plan's head.
constexpr char kNextLine[] = "                   ";

std::string RanksName(const std::vector<int>& ranks) {
  return absl::StrCat(ranks.size() == 1 ? "rank " : "ranks ",
                      RangesText(ranks));
}

// Bytes by tier and line item, and the tiers' budgets: what a column shows.
struct RankMemory {
  std::map<std::pair<Tier, std::string>, int64_t> items;
  std::map<Tier, int64_t> budgets;
  bool operator==(const RankMemory&) const = default;

  int64_t Total(Tier tier) const {
    int64_t total = 0;
    for (const auto& [key, bytes] : items) {
      if (key.first == tier) total += bytes;
    }
    return total;
  }
};

struct Column {
  RankMemory memory;
  std::vector<int> ranks;
};

std::vector<Column> Columns(const Prediction& prediction) {
  std::vector<Column> columns;
  for (const RankPrediction& rank : prediction.ranks()) {
    RankMemory memory;
    for (const MemoryItem& item : rank.memory()) {
      memory.items[{item.tier(), item.item()}] += item.bytes();
    }
    for (const TierBudget& budget : rank.budgets()) {
      memory.budgets[budget.tier()] = budget.bytes();
    }
    const auto same =
        std::find_if(columns.begin(), columns.end(),
                     [&](const Column& c) { return c.memory == memory; });
    if (same == columns.end()) {
      columns.push_back({std::move(memory), {rank.rank()}});
    } else {
      same->ranks.push_back(rank.rank());
    }
  }
  return columns;
}

// The line items of a tier, in the order in which the planner lists them.
std::vector<std::string> ItemsOf(const Prediction& prediction, Tier tier) {
  std::vector<std::string> items;
  for (const RankPrediction& rank : prediction.ranks()) {
    for (const MemoryItem& item : rank.memory()) {
      if (item.tier() == tier &&
          std::find(items.begin(), items.end(), item.item()) == items.end()) {
        items.push_back(item.item());
      }
    }
  }
  return items;
}

void AddTier(const Prediction& prediction, const std::vector<Column>& columns,
             Tier tier, Table& table) {
  const std::vector<std::string> items = ItemsOf(prediction, tier);
  if (items.empty()) return;
  const auto add = [&](const std::string& name, const std::string& item,
                       const auto& cell) {
    std::vector<std::string> cells = {name, item};
    for (const Column& column : columns) cells.push_back(cell(column.memory));
    table.Add(std::move(cells));
  };
  for (const std::string& item : items) {
    add(&item == &items.front() ? TierText(tier) : "", item,
        [&](const RankMemory& memory) {
          const auto found = memory.items.find({tier, item});
          return found == memory.items.end() ? "-" : BytesText(found->second);
        });
  }
  add("", "total",
      [&](const RankMemory& memory) { return BytesText(memory.Total(tier)); });
  add("", "of budget", [&](const RankMemory& memory) {
    const auto found = memory.budgets.find(tier);
    return found == memory.budgets.end() ? "-" : BytesText(found->second);
  });
}

// Of a worker's process; empty where nobody knows, as on hardware that one does
// not have.
std::string ResidentText(const Prediction& prediction) {
  int64_t most = 0;
  for (const RankPrediction& rank : prediction.ranks()) {
    most = std::max<int64_t>(most, rank.resident_bytes());
  }
  if (most == 0) return "";
  return absl::StrCat("  resident memory  ", BytesText(most),
                      " of a worker at its peak\n");
}

// Empty where nothing is known of the machine.
std::string MachineText(const Prediction& prediction) {
  if (!prediction.has_machine()) return "";
  const MachinePace& pace = prediction.machine();
  return absl::StrCat(
      "  machine          ", PaceText(pace),
      IsWorthSaying(pace)
          ? absl::StrCat(
                ", for which this is predicted; a step may take ",
                SecondsText(prediction.step_seconds() * (1 + pace.slower())))
          : "",
      "\n");
}

// By tier: what the rank moves that moves most, and how long the rank waits
// that waits longest.
std::map<Tier, TierTraffic> MostTraffic(const Prediction& prediction) {
  std::map<Tier, TierTraffic> most;
  for (const RankPrediction& rank : prediction.ranks()) {
    for (const TierTraffic& of : rank.tiers()) {
      TierTraffic& so_far = most[of.tier()];
      so_far.set_bytes_in(std::max(so_far.bytes_in(), of.bytes_in()));
      so_far.set_bytes_out(std::max(so_far.bytes_out(), of.bytes_out()));
      so_far.set_waited_seconds(
          std::max(so_far.waited_seconds(), of.waited_seconds()));
    }
  }
  return most;
}

// Empty where nothing moves.
std::string MovesText(const Prediction& prediction) {
  std::vector<std::string> tiers;
  for (const auto& [tier, traffic] : MostTraffic(prediction)) {
    tiers.push_back(absl::StrCat(
        BytesText(traffic.bytes_in()), " up from ", TierText(tier), ", ",
        BytesText(traffic.bytes_out()), " down to it, waits ",
        SecondsText(traffic.waited_seconds()), " for it"));
  }
  if (tiers.empty()) return "";
  return absl::StrCat("  moved by a rank  ", absl::StrJoin(tiers, "; "),
                      ", a step\n");
}

// What copies for a recovery cost.
std::string CopiesText(const Plan& plan) {
  const Prediction& prediction = plan.prediction();
  if (prediction.keep_every() == 0) return "";
  const int group = CopiesGroup(plan);
  const double share = prediction.keep_seconds() /
                       (static_cast<double>(prediction.keep_every()) *
                        prediction.step_seconds());
  return absl::StrCat(
      "  copies of states ", SecondsText(prediction.keep_seconds()), " every ",
      prediction.keep_every() == 1
          ? "step"
          : absl::StrCat(prediction.keep_every(), " steps"),
      ", beside the step time (", PercentText(share), ")",
      group < 0 ? "" : absl::StrCat(", to ", plan.groups(group).purpose()),
      "\n");
}

// What communication rests on; empty for one worker.
std::string LinksText(const Prediction& prediction) {
  std::string text;
  for (const LinkUsed& used : prediction.links()) {
    absl::StrAppend(&text, text.empty() ? "  links            " : "; ",
                    used.what(), " ", LinkText(used.link()));
  }
  return text.empty() ? "" : text + "\n";
}

// "40.0% of 989TFLOP/s by the datasheets; products reach 794TFLOP/s"
std::string MfuText(const Prediction& prediction) {
  const std::string measured =
      absl::StrCat(CountText(prediction.peak_flops_per_second()), "FLOP/s");
  const double stated = prediction.datasheet_flops_per_second();
  return absl::StrCat(
      "  MFU              ", PercentText(prediction.model_flops_utilization()),
      " of ",
      stated > 0
          ? absl::StrCat(CountText(stated),
                         "FLOP/s by the datasheets; products reach ", measured)
          : absl::StrCat(measured, ", as measured"),
      "\n");
}

std::string PredictionText(const Plan& plan) {
  const Prediction& prediction = plan.prediction();
  int64_t sent_max = 0;
  double compute_max = 0;
  double exposed_max = 0;
  for (const RankPrediction& rank : prediction.ranks()) {
    sent_max = std::max<int64_t>(sent_max, rank.bytes_sent_per_step());
    compute_max = std::max(compute_max, rank.compute_seconds());
    exposed_max = std::max(exposed_max, rank.exposed_communication_seconds());
  }
  return absl::StrCat(
      "  step time        ", SecondsText(prediction.step_seconds()),
      "  (compute ", SecondsText(compute_max), ", communication not hidden ",
      SecondsText(exposed_max), ")\n", "  bubble           ",
      PercentText(prediction.bubble_of_total()), " of the step, ",
      PercentText(prediction.bubble_of_ideal()), " of the ideal one\n",
      "  tokens/s         ", CountText(prediction.tokens_per_second()), "\n",
      MfuText(prediction), ResidentText(prediction), "  sent by a rank   ",
      BytesText(sent_max), " a step\n", MovesText(prediction),
      prediction.gathers().empty()
          ? ""
          : absl::StrCat("  gathers          ", prediction.gathers(), "\n"),
      CopiesText(plan), LinksText(prediction), ExchangesText(plan, kNextLine),
      MachineText(prediction), "  limited by       ", prediction.limited_by(),
      "\n",
      prediction.chosen_memory().empty()
          ? ""
          : absl::StrCat("  memory: auto     ", prediction.chosen_memory(),
                         "\n"));
}

// "data, world over shared_memory"; "tensor over nccl; 8 of data over nccl, 4
// over gloo": where not all of a kind are carried alike, how many.
std::string GroupsText(const Plan& plan) {
  std::map<std::string, std::vector<std::string>> names;  // by backend
  for (const Group& group : plan.groups()) {
    std::map<std::string, int> counts;  // by backend
    const int groups = GroupCount(plan.mesh(), group);
    for (int n = 0; n < groups; ++n) {
      const Group::Carrier& carrier = CarrierOf(group, n);
      ++counts[absl::StrCat(carrier.backend(), carrier.staged()
                                                   ? ", staged through the host"
                                                   : "")];
    }
    for (const auto& [backend, count] : counts) {
      if (backend.empty()) continue;  // a plan that an older scheduler stored
      names[backend].push_back(count == groups
                                   ? group.name()
                                   : absl::StrCat(count, " of ", group.name()));
    }
  }
  std::vector<std::string> parts;
  for (const auto& [backend, groups] : names) {
    parts.push_back(
        absl::StrCat(absl::StrJoin(groups, ", "), " over ", backend));
  }
  return parts.empty() ? "not known" : absl::StrJoin(parts, "; ");
}

// "0-2"; "3".
std::string UnitsText(const Stage& stage) {
  const int last = stage.unit() + stage.unit_count() - 1;
  return stage.unit() == last ? absl::StrCat(last)
                              : absl::StrCat(stage.unit(), "-", last);
}

// What each stage takes where it lies; empty where all places of the pipeline
// are equally fast.
std::string StageTimes(const Plan& plan) {
  const auto& times = plan.prediction().stages();
  if (times.empty()) return "";
  Table table({"stage>", "units", "layers>", "pipeline ranks", "a micro-batch>",
               "slowest rank"});
  for (int s = 0; s < plan.stages_size(); ++s) {
    const Stage& stage = plan.stages(s);
    int layers = 0;
    for (int u = stage.unit(); u < stage.unit() + stage.unit_count(); ++u) {
      if (plan.units(u).kind() == Unit::BLOCK) ++layers;
    }
    table.Add({absl::StrCat(s), UnitsText(stage), absl::StrCat(layers),
               RangesText({stage.pipeline_ranks().begin(),
                           stage.pipeline_ranks().end()}),
               SecondsText(times[s].seconds()), times[s].device()});
  }
  return table.Text(std::string(4, ' '));
}

// "units 0-2 | 3-5 on 2 pipeline ranks"; empty without a pipeline.
std::string StagesText(const Plan& plan) {
  const int ranks = AxisSize(plan.mesh(), "pipeline");
  if (ranks <= 1) return "";
  std::vector<std::string> stages;
  for (const Stage& stage : plan.stages()) stages.push_back(UnitsText(stage));
  return absl::StrCat("  stages           ", stages.size(), " on ", ranks,
                      " ranks, ", plan.job().parallelism().pipeline_schedule(),
                      ": units ", absl::StrJoin(stages, " | "), "\n",
                      StageTimes(plan));
}

// What the ranks of a stage do for which units, a line for each run of units;
// empty where they do the same for all.
std::string StrategiesText(const Plan& plan) {
  const ParallelismSpec& parallelism = plan.job().parallelism();
  if (parallelism.strategies().empty()) return "";
  const std::vector<int> of_unit =
      StrategyOfUnits(parallelism, KindsOf(plan.units()), plan.stages());
  const auto sharing = [&](int u) {
    const int s = of_unit[u];
    return SharingText(
        s < 0 ? parallelism
              : WithStrategy(parallelism, parallelism.strategies(s)));
  };
  std::string text;
  for (int u = 0; u < plan.units_size();) {
    Stage run;
    run.set_unit(u);
    const std::string of_run = sharing(u);
    while (u < plan.units_size() && sharing(u) == of_run) ++u;
    run.set_unit_count(u - run.unit());
    absl::StrAppend(&text, text.empty() ? "  strategies       " : kNextLine,
                    "units ", UnitsText(run), ": ", of_run, "\n");
  }
  return text;
}

std::string Indented(const std::string& text) {
  std::string out;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    absl::StrAppend(&out, "  ", line, "\n");
  }
  return out;
}

// For each pattern of training.freeze, what it matches, also where another does
// as well; empty where nothing is frozen.
std::string FrozenText(const Plan& plan) {
  std::string text;
  for (const std::string& pattern : plan.job().training().freeze()) {
    int tensors = 0;
    int64_t elements = 0;
    for (const Unit& unit : plan.units()) {
      for (const Parameter& parameter : unit.parameters()) {
        if (!GlobMatches(pattern, parameter.name())) continue;
        ++tensors;
        elements += ElementsOf(parameter);
      }
    }
    absl::StrAppend(&text,
                    text.empty() ? "  frozen           " : std::string(19, ' '),
                    CountText(elements), " in ", tensors,
                    tensors == 1 ? " tensor: " : " tensors: ", pattern, "\n");
  }
  return text;
}

}  // namespace

std::string MemoryTable(const Prediction& prediction) {
  const std::vector<Column> columns = Columns(prediction);
  std::vector<std::string> names = {"tier", "item"};
  for (const Column& column : columns) {
    names.push_back(RanksName(column.ranks) + ">");
  }
  Table table(std::move(names));
  for (const Tier tier : {DEVICE, HOST, NVME}) {
    AddTier(prediction, columns, tier, table);
  }
  return table.Text("  ");
}

std::string PlanText(const Plan& plan) {
  const Derived& derived = plan.derived();
  return absl::StrCat(
      "plan of ", plan.job().name(), ", fingerprint ", plan.fingerprint(), "\n",
      "  mesh             ", MeshText(plan.mesh()), "\n", "  communication    ",
      GroupsText(plan), "\n", StagesText(plan), StrategiesText(plan),
      "  parameters       ", CountText(derived.parameters()),
      derived.active_parameters() == 0
          ? ""
          : absl::StrCat(", ", CountText(derived.active_parameters()),
                         " of them for each token"),
      derived.frozen_parameters() == 0
          ? ""
          : absl::StrCat(", ", CountText(derived.frozen_parameters()),
                         " of them frozen"),
      "\n", FrozenText(plan), ExpertsText(plan, kNextLine), ReplicasText(plan),
      "  tokens/step      ", GroupedText(derived.tokens_per_step()), "\n",
      "  model FLOPs      ", CountText(derived.model_flops_per_token()),
      " a token\n", "\nmemory of a rank\n", MemoryTable(plan.prediction()),
      "\nprediction\n", PredictionText(plan), "\njob, resolved\n",
      Indented(JobYaml(plan.job())));
}

std::string ProgramsText(const Plan& plan) {
  std::string out;
  for (const Role& role : plan.roles()) {
    absl::StrAppend(&out, "## ", RoleText(role), ", ",
                    RanksName(RanksOf(plan.mesh(), role)), "\n");
    for (const Program& program : role.programs()) {
      absl::StrAppend(&out, "# ", Program_Kind_Name(program.kind()), "\n",
                      ProgramText(program, plan.lanes()));
    }
    absl::StrAppend(&out, "\n");
  }
  return out;
}

}  // namespace troupe
