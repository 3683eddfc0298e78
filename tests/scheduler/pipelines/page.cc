#include "tests/scheduler/pipelines/page.h"

#include <algorithm>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "proto/base/check.h"
#include "scheduler/pipelines/pipelines.h"
#include "tests/scheduler/pipelines/evaluate.h"

namespace troupe {
namespace {

// "F0" forward of micro-batch 0, "B0" backward, "I0" and "W0" its halves; small
// letters where it is another than the rank's first stage.
std::string Word(const TimedPass& pass) {
  constexpr char kLetters[] = {'F', 'I', 'W'};
  const std::string letter(
      1, pass.with_weight ? 'B' : kLetters[static_cast<int>(pass.step.kind)]);
  return absl::StrCat(letter, pass.entered);
}

std::string Drawing(absl::string_view name, const EvaluateOptions& options) {
  const auto order = FindPipeline(name)->order(options.shape);
  CHECK_OK(order.status());
  const Evaluation result = Evaluate(*order, options);
  std::string text = "```text\n";
  for (size_t rank = 0; rank < result.passes.size(); ++rank) {
    std::vector<std::string> cells(result.makespan, ".");
    for (const TimedPass& pass : result.passes[rank]) {
      const bool first_stage = pass.step.stage == static_cast<int>(rank);
      for (int64_t t = pass.start; t < pass.end; ++t) {
        cells[t] = t > pass.start ? "--"
                   : first_stage  ? Word(pass)
                                  : absl::AsciiStrToLower(Word(pass));
      }
    }
    std::string line = absl::StrCat("rank ", rank, "  ");
    for (const std::string& cell : cells) {
      absl::StrAppendFormat(&line, "%-3s", cell);
    }
    absl::StrAppend(&text, absl::StripTrailingAsciiWhitespace(line), "\n");
  }
  return absl::StrCat(text, "```\n");
}

// The share of a step that a rank idles, and the peak of activations in what a
// rank keeps of one micro-batch, where forward, backward-input and
// backward-weight take the same time.
std::string Cost(const Pipeline& pipeline, PipelineShape shape) {
  shape.virtual_stages = pipeline.default_virtual_stages;
  const auto order = pipeline.order(shape);
  if (!order.ok()) return "–";
  const bool overlaps = pipeline.asynchronous || pipeline.overlaps_steps;
  const int programs = overlaps ? 12 : 1;
  const Evaluation result =
      Evaluate(*order, {.shape = shape, .programs = programs});
  const std::vector<int64_t>& ends = result.program_ends.front();
  const double step =
      overlaps ? ends[programs - 1] - ends[programs - 2] : result.makespan;
  const double busy =
      PassTimes{}.all() * shape.micro_batches * shape.virtual_stages;
  const double peak =
      *std::max_element(result.peaks.begin(), result.peaks.end());
  return absl::StrFormat("%.1f %%, %g", 100 * (1 - busy / step),
                         peak / shape.virtual_stages);
}

std::string Costs() {
  const std::vector<PipelineShape> shapes = {
      {.ranks = 4, .micro_batches = 4},  {.ranks = 4, .micro_batches = 8},
      {.ranks = 4, .micro_batches = 32}, {.ranks = 8, .micro_batches = 8},
      {.ranks = 8, .micro_batches = 16}, {.ranks = 8, .micro_batches = 32},
  };
  std::string text = "| schedule |";
  for (const PipelineShape& shape : shapes) {
    absl::StrAppend(&text, " P ", shape.ranks, ", M ", shape.micro_batches,
                    " |");
  }
  absl::StrAppend(&text, "\n|---|");
  for (size_t i = 0; i < shapes.size(); ++i) absl::StrAppend(&text, "---|");
  for (const Pipeline& pipeline : Pipelines()) {
    absl::StrAppend(&text, "\n| `", pipeline.name, "` |");
    for (const PipelineShape& shape : shapes) {
      absl::StrAppend(&text, " ", Cost(pipeline, shape), " |");
    }
  }
  return absl::StrCat(text, "\n");
}

std::string MadePart(absl::string_view name) {
  if (name == "costs") return Costs();
  PipelineShape shape = {.ranks = 4, .micro_batches = 4};
  shape.virtual_stages = FindPipeline(name)->default_virtual_stages;
  EvaluateOptions options = {.shape = shape};
  if (name == "zb_h2" || name == "zb_v") options.shape.micro_batches = 7;
  if (name == "zb_v") options.shape.ranks = 3;
  if (FindPipeline(name)->asynchronous) {
    options.shape.micro_batches = 3;
    options.programs = 2;
  }
  return Drawing(name, options);
}

}  // namespace

std::string WithMadeParts(absl::string_view page) {
  constexpr absl::string_view kBegin = "<!-- made by tests: ";
  constexpr absl::string_view kEnd = "<!-- end -->";
  std::vector<std::string> lines;
  bool made = false;
  for (const absl::string_view line : absl::StrSplit(page, '\n')) {
    if (line == kEnd) made = false;
    if (!made) lines.emplace_back(line);
    if (line.substr(0, kBegin.size()) == kBegin) {
      made = true;
      const absl::string_view rest = line.substr(kBegin.size());
      lines.push_back(MadePart(rest.substr(0, rest.find(' '))));
      lines.back().pop_back();  // its last line's end
    }
  }
  return absl::StrJoin(lines, "\n");
}

}  // namespace troupe
