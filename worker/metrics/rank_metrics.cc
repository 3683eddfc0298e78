#include "worker/metrics/rank_metrics.h"

#include <algorithm>
#include <utility>

#include "absl/strings/string_view.h"
#include "proto/base/status.h"
#include "proto/base/steady_time.h"
#include "worker/metrics/event_file.h"
#include "worker/metrics/table_file.h"

namespace troupe {
namespace {

struct NamedFile {
  absl::string_view field;
  std::unique_ptr<MetricsFile> file;
};

std::vector<NamedFile> FilesOf(const MetricsSpec& metrics,
                               const RankMetricsOptions& options) {
  std::vector<NamedFile> files;
  const MetricsStart& start = options.start;
  if (!metrics.directory().empty()) {
    for (const TableFormat* format : {&JsonLinesFormat(), &CsvFormat()}) {
      files.push_back(
          {"metrics.directory",
           std::make_unique<TableFile>(metrics.directory(), *format, start)});
    }
  }
  if (!metrics.tensorboard().empty()) {
    files.push_back(
        {"metrics.tensorboard",
         std::make_unique<EventFile>(metrics.tensorboard(), start.first_step,
                                     options.clock.Now())});
  }
  return files;
}

}  // namespace

absl::StatusOr<std::unique_ptr<RankMetrics>> RankMetrics::Open(
    const MetricsSpec& spec, const RankMetricsOptions& options) {
  auto metrics = std::unique_ptr<RankMetrics>(new RankMetrics(options));
  for (NamedFile& named : FilesOf(spec, options)) {
    MetricsWriterOptions writer = {.notice = options.notice};
    if (!options.start.ran_before) {
      const absl::StatusOr<std::vector<std::string>> begun =
          named.file->Start();
      if (!begun.ok()) return Annotate(begun.status(), named.field);
      for (const std::string& text : *begun) options.notice(text);
      writer.started = true;
    }
    metrics->writers_.push_back(
        std::make_unique<MetricsWriter>(std::move(named.file), writer));
  }
  if (metrics->writers_.empty()) return nullptr;
  return metrics;
}

RankMetrics::~RankMetrics() = default;

void RankMetrics::Add(const StepRecord& record) {
  auto row = std::make_shared<MetricsRow>();
  row->unix_ms = absl::ToUnixMillis(options_.clock.Now());
  row->attempt = options_.attempt;
  row->record = record;
  for (const auto& writer : writers_) writer->Add(row);
}

void RankMetrics::Close() {
  const absl::Time deadline = SteadyNow() + options_.close_patience;
  for (const auto& writer : writers_) {
    writer->Close(std::max(deadline - SteadyNow(), absl::ZeroDuration()));
  }
}

}  // namespace troupe
