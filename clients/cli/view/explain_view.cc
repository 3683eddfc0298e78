#include "clients/cli/view/explain_view.h"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "clients/cli/view/format.h"
#include "proto/plan/sharing.h"

namespace troupe {
namespace {

constexpr int kLineWidth = 110;
constexpr int kLastColumnWidth = 52;
constexpr int kQuickestShown = 10;
constexpr int kShownBesideBest = 10;  // of a search
constexpr char kLegend[] =
    "ways to share the ranks of each stage, in place of what the job says of "
    "them; as predicted, by time of a step\n"
    "sent: in a step, by the rank that sends most; memory: of the rank that "
    "fills it most, and how full it is\n\n";
constexpr int kNamesShown = 3;  // of ways that are refused for one reason

// The words of a text; "12 %" is one.
std::vector<std::string> WordsOf(const std::string& text) {
  std::vector<std::string> words;
  for (const absl::string_view word : absl::StrSplit(text, ' ')) {
    if (absl::StartsWith(word, "%") && !words.empty()) {
      absl::StrAppend(&words.back(), " ", word);
    } else {
      words.emplace_back(word);
    }
  }
  return words;
}

// Lines of at most `width`, where words are not longer.
std::vector<std::string> Wrapped(const std::string& text, int width,
                                 const std::string& indent = "") {
  std::vector<std::string> lines;
  for (const std::string& word : WordsOf(text)) {
    const bool starts =
        lines.empty() || TextWidth(lines.back()) + 1 + TextWidth(word) > width;
    if (starts) {
      lines.push_back(absl::StrCat(indent, word));
    } else {
      absl::StrAppend(&lines.back(), " ", word);
    }
  }
  return lines;
}

// How the way shares units, by each field of ranks, without numbers: "context,
// context_method: ring", "tensor, sequence_parallel: true".
std::vector<std::string> LayoutsOf(const ParallelismSpec& parallelism) {
  std::vector<std::string> layouts;
  if (SharesUnits(parallelism)) {
    const std::vector<std::string> fields =
        absl::StrSplit(SharingText(parallelism), ", ");
    for (const std::string& said : fields) {
      const std::pair<std::string, std::string> field =
          absl::StrSplit(said, ": ");
      int number = 0;
      const std::string word =
          absl::SimpleAtoi(field.second, &number) ? field.first : said;
      if (IsRankField(field.first)) {
        layouts.push_back(word);
      } else {
        absl::StrAppend(&layouts.back(), ", ", word);
      }
    }
  }
  for (const RankField& field : RankFields()) {
    if (field.of_data && RanksOf(parallelism, field.name) > 1) {
      layouts.push_back(field.name);
    }
  }
  if (!parallelism.strategies().empty()) layouts.push_back("strategies");
  if (parallelism.zero() > 0) {
    layouts.push_back(absl::StrCat("zero ", parallelism.zero()));
  }
  if (layouts.empty()) layouts.push_back("data");
  return layouts;
}

// Indices of what is worth a row.
std::vector<int> Shown(const Explanation& explanation) {
  std::vector<int> shown;
  std::set<std::string> seen;
  for (int i = 0; i < explanation.ways_size(); ++i) {
    const WayFields& fields = explanation.ways(i).fields();
    bool is_worth = explanation.has_search()
                        ? i <= kShownBesideBest
                        : i < kQuickestShown || fields.is_job();
    // Of a search, only the best that differ.
    for (const std::string& layout : LayoutsOf(fields.parallelism())) {
      is_worth |= !explanation.has_search() && seen.insert(layout).second;
    }
    if (is_worth) shown.push_back(i);
  }
  return shown;
}

// What others are compared with: the job, or what was chosen.
const ExplainedWay* FindJob(const Explanation& explanation) {
  if (explanation.has_search() && explanation.ways_size() > 0) {
    return &explanation.ways(0);
  }
  for (const ExplainedWay& way : explanation.ways()) {
    if (way.fields().is_job()) return &way;
  }
  return nullptr;
}

class WayRows {
 public:
  explicit WayRows(const Explanation& explanation)
      : explanation_(explanation),
        job_(FindJob(explanation)),
        table_({">", "step>", explanation.has_search() ? "vs best>" : "vs job>",
                "tokens/s>", "sent>", "memory>", "full>",
                "parallelism, and what would make it better"}) {}

  void Add(int index) {
    const ExplainedWay& way = explanation_.ways(index);
    if (!way.fits() && !said_lacks_) {
      said_lacks_ = true;
      AddLines({"", "too little memory; if there were enough:"});
    }
    const std::vector<std::string> name = Wrapped(
        WayText(way.fields()) + (way.fields().is_job() ? "  <- the job" : ""),
        kLastColumnWidth);
    table_.Add({absl::StrCat(index + 1), SecondsText(way.step_seconds()),
                Speed(way), CountText(way.tokens_per_second()),
                BytesText(way.bytes_sent_per_step()),
                BytesText(way.memory_bytes()), Full(way), name.front()});
    AddLines({name.begin() + 1, name.end()});
    AddLines(Wrapped(way.advice(), kLastColumnWidth, "  "));
    if (way.chosen_memory().empty()) return;
    AddLines(Wrapped(absl::StrCat("memory: auto takes ", way.chosen_memory()),
                     kLastColumnWidth, "  "));
  }

  std::string Text() const { return table_.Text(); }

 private:
  void AddLines(const std::vector<std::string>& lines) {
    for (const std::string& line : lines) {
      table_.Add({"", "", "", "", "", "", "", line});
    }
  }

  // Steps of the job's time in one of the way's.
  std::string Speed(const ExplainedWay& way) const {
    if (job_ == nullptr || !(way.step_seconds() > 0)) return "-";
    return absl::StrFormat("%.2fx", job_->step_seconds() / way.step_seconds());
  }

  static std::string Full(const ExplainedWay& way) {
    if (way.budget_bytes() == 0) return "-";
    return absl::StrFormat(
        "%.0f%%",
        100.0 * way.memory_bytes() / static_cast<double>(way.budget_bytes()));
  }

  const Explanation& explanation_;
  const ExplainedWay* const job_;
  bool said_lacks_ = false;
  Table table_;
};

// As far as it says what is wrong, without the way out.
std::string ShortReason(const std::string& reason) {
  const std::vector<std::string> parts = absl::StrSplit(reason, "; ");
  return parts.front();
}

std::string RefusedText(const Explanation& explanation) {
  std::vector<std::pair<std::string, std::vector<std::string>>> groups;
  for (const RefusedWay& refused : explanation.refused()) {
    const std::string reason = ShortReason(refused.reason());
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const auto& g) { return g.first == reason; });
    if (group == groups.end()) group = groups.insert(group, {reason, {}});
    group->second.push_back(
        absl::StrCat("[", WayText(refused.fields()),
                     refused.fields().is_job() ? " <- the job]" : "]"));
  }
  std::string text;
  for (auto& [reason, names] : groups) {
    const size_t more =
        names.size() - std::min<size_t>(names.size(), kNamesShown);
    names.resize(names.size() - more);
    const std::string line =
        absl::StrCat(reason, ": ", absl::StrJoin(names, ", "),
                     more > 0 ? absl::StrCat(" and ", more, " more") : "");
    bool first = true;
    for (const std::string& part : Wrapped(line, kLineWidth - 4)) {
      absl::StrAppend(&text, first ? "  " : "    ", part, "\n");
      first = false;
    }
  }
  return text.empty() ? "" : absl::StrCat("\ncannot be planned\n", text);
}

// "strategies: [{units: [blocks], batch: 2}]"; empty where there are none.
std::string StrategyFields(const ParallelismSpec& parallelism) {
  std::vector<std::string> all;
  for (const StrategySpec& strategy : parallelism.strategies()) {
    ParallelismSpec shares;
    CopySharing(strategy, shares);
    const std::string what =
        strategy.has_stage()
            ? absl::StrCat("stage: ", strategy.stage())
            : absl::StrCat("units: [", absl::StrJoin(strategy.units(), ", "),
                           "]");
    all.push_back(absl::StrCat("{", what, ", ", SharingText(shares), "}"));
  }
  return all.empty()
             ? ""
             : absl::StrCat("strategies: [", absl::StrJoin(all, ", "), "]");
}

}  // namespace

std::string WayText(const WayFields& fields) {
  std::vector<std::string> parts;
  const ParallelismSpec& p = fields.parallelism();
  const auto add = [&](const char* name, int value) {
    if (value > 0) parts.push_back(absl::StrCat(name, ": ", value));
  };
  add("data", p.data());
  add("pipeline", p.pipeline());
  if (p.has_pipeline_schedule()) {
    parts.push_back(absl::StrCat("pipeline_schedule: ", p.pipeline_schedule()));
  }
  add("virtual_stages", p.virtual_stages());
  const std::string of_data = SharingOfDataText(p);
  if (!of_data.empty()) parts.push_back(of_data);
  if (SharesUnits(p)) parts.push_back(SharingText(p));
  const std::string strategies = StrategyFields(p);
  if (!strategies.empty()) parts.push_back(strategies);
  add("zero", p.zero());
  add("zero_size", p.zero_size());
  if (!p.zero_weights().empty()) {
    parts.push_back(absl::StrCat("zero_weights: [",
                                 absl::StrJoin(p.zero_weights(), ", "), "]"));
  }
  add("micro_batch_size", fields.micro_batch_size());
  if (!fields.recompute().empty()) {
    parts.push_back(absl::StrCat("memory.recompute: ", fields.recompute()));
  }
  return parts.empty() ? "data: 1" : absl::StrJoin(parts, ", ");
}

namespace {

// What a search chose and why, and what it ruled out.
std::string ChoiceText(const Explanation& explanation) {
  const SearchSummary& search = explanation.search();
  const ExplainedWay& best = explanation.ways(0);
  std::string text = absl::StrFormat(
      "chosen for %d workers, by %s: %s\n  a step takes %s; %s\n",
      search.workers(), search.objective(), WayText(best.fields()),
      SecondsText(best.step_seconds()), best.advice());
  if (best.tokens_per_dollar() > 0) {
    absl::StrAppend(&text, "  ", CountText(best.tokens_per_dollar()),
                    " tokens a dollar\n");
  }
  absl::StrAppendFormat(
      &text,
      "searched: %d divisions of ranks and batches; %d ways estimated, %d "
      "simulated, which estimates missed by %.0f %% at most\n",
      search.candidates(), search.estimated(), search.simulated(),
      100 * search.error_max());
  if (search.not_simulated() > 0) {
    absl::StrAppend(&text, "  ", search.not_simulated(),
                    " that could be better by their estimates were not "
                    "simulated, as that takes too long\n");
  }
  for (const RuledOut& out : search.ruled_out()) {
    const std::string lacks =
        out.has_nearest()
            ? absl::StrCat("; closest, by ", BytesText(out.lacks_bytes()),
                           " a rank: ", WayText(out.nearest()))
            : "";
    bool first = true;
    for (const std::string& line :
         Wrapped(absl::StrCat(out.count(), " ruled out: ", out.reason(), lacks),
                 kLineWidth - 4)) {
      absl::StrAppend(&text, first ? "  " : "    ", line, "\n");
      first = false;
    }
  }
  return text;
}

// "twice the batch: pipeline: 2; a step takes 3.1 s, 5 % less than the choice
// as it is".
std::string ChangeText(const ChangedChoice& change) {
  if (change.step_seconds() == 0) {
    // One that was not tried says so itself.
    return absl::StrCat(change.change(),
                        change.is_same() ? "" : ": nothing fits");
  }
  const std::string takes =
      absl::StrCat("a step takes ", SecondsText(change.step_seconds()));
  if (change.is_same()) {
    return absl::StrCat(change.change(), ": the choice stays; ", takes);
  }
  const double as_it_is = change.choice_step_seconds();
  return absl::StrCat(
      change.change(), ": ", WayText(change.fields()), "; ", takes,
      as_it_is > 0
          ? absl::StrCat(", with the choice as it is ", SecondsText(as_it_is))
          : ", and the choice as it is does not fit");
}

// What was tried, whether it changes the choice or not.
std::string ChangesText(const SearchSummary& search) {
  if (search.changes().empty()) return "";
  std::string text = "\nwhat would be chosen with\n";
  for (const ChangedChoice& change : search.changes()) {
    bool first = true;
    for (const std::string& line :
         Wrapped(ChangeText(change), kLineWidth - 4)) {
      absl::StrAppend(&text, first ? "  " : "    ", line, "\n");
      first = false;
    }
  }
  return text;
}

}  // namespace

std::string ExplanationText(const Explanation& explanation) {
  WayRows rows(explanation);
  const std::vector<int> shown = Shown(explanation);
  for (const int index : shown) rows.Add(index);
  std::string text =
      explanation.has_search()
          ? absl::StrCat(ChoiceText(explanation), "\n", rows.Text())
          : absl::StrCat(kLegend, rows.Text());
  const size_t hidden = explanation.ways_size() - shown.size();
  if (hidden > 0) {
    absl::StrAppend(&text, "\nand ", hidden, " more; --json has all\n");
  }
  if (explanation.left_out() > 0) {
    absl::StrAppend(&text, "\n", explanation.left_out(),
                    " more ways were not planned\n");
  }
  return absl::StrCat(text, RefusedText(explanation),
                      ChangesText(explanation.search()));
}

}  // namespace troupe
