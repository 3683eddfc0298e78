#include "clients/job_file/fill_message.h"

#include <algorithm>
#include <fstream>
#include <set>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_split.h"
#include "gtest/gtest.h"
#include "proto/cluster_spec.pb.h"
#include "proto/job.pb.h"

namespace troupe {
namespace {

const YamlSource kSource{"job.yaml"};

std::string ErrorOf(const std::string& text) {
  JobSpec job;
  PositionMap positions;
  const YamlNode root = ParseYaml(text, kSource).value();
  return std::string(FillMessage(root, kSource, job, positions).message());
}

TEST(FillMessage, FillsWhatIsThere) {
  JobSpec job;
  PositionMap positions;
  const YamlNode root =
      ParseYaml("name: a\noptimizer: {betas: [0.9, 0.95]}\nlr_scheduler:\n",
                kSource)
          .value();
  ASSERT_TRUE(FillMessage(root, kSource, job, positions).ok());
  EXPECT_EQ(job.name(), "a");
  EXPECT_EQ(job.optimizer().betas_size(), 2);
  EXPECT_FALSE(job.optimizer().has_lr());
  EXPECT_EQ(positions.at("name"), "job.yaml:1:7");
  EXPECT_EQ(positions.at("optimizer.betas[1]"), "job.yaml:2:26");
  EXPECT_EQ(positions.count("optimizer.lr"), 0);
}

TEST(FillMessage, RefusesWithThePlaceAndTheWayOut) {
  const struct {
    const char* text;
    const char* error;
  } cases[] = {
      {"parallelism:\n  dta: 4\n",
       "job.yaml:2:3: parallelism.dta: no such field; did you mean data?"},
      {"modle: {}\n",
       "job.yaml:1:1: modle: no such field; did you mean model?"},
      {"model: {n_layer: 6}\n",
       "job.yaml:1:9: model.n_layer: no such field; did you mean "
       "num_hidden_layers?"},
      {"training: {learning_rate: 1}\n",
       "job.yaml:1:12: training.learning_rate: no such field; did you mean "
       "optimizer.lr?"},
      {"lr_scheduler: {zebra: 1}\n",
       "job.yaml:1:16: lr_scheduler.zebra: no such field; there are name, "
       "warmup_steps, min_lr, decay_steps"},
      {"training: {steps: many}\n",
       "job.yaml:1:19: training.steps: expected an integer, found the text "
       "\"many\""},
      {"optimizer: {betas: {a: 1}}\n",
       "job.yaml:1:20: optimizer.betas: expected a list, as in betas: [...], "
       "found a section with fields of its own"},
      {"optimizer: {betas: x}\n",
       "job.yaml:1:20: optimizer.betas: expected a number, found the text "
       "\"x\""},
      {"optimizer: {betas: [0.9, x]}\n",
       "job.yaml:1:26: optimizer.betas[1]: expected a number, found the text "
       "\"x\""},
      {"training: {steps: [200]}\n",
       "job.yaml:1:19: training.steps: expected an integer, found a list"},
      {"model: gpt2\n",
       "job.yaml:1:8: model: expected fields, as in \"architecture: ...\", "
       "found the text \"gpt2\""},
      {"- a\n",
       "job.yaml:1:1: expected fields, as in \"name: ...\", found a list"},
      {"name: {a: 1}\n",
       "job.yaml:1:7: name: expected a text, found a section with fields of "
       "its "
       "own"},
  };
  for (const auto& c : cases) EXPECT_EQ(ErrorOf(c.text), c.error) << c.text;
}

TEST(FillField, SetsReplacesAndClears) {
  JobSpec job;
  PositionMap positions;
  const YamlSource source{"--set x", false};
  const auto set = [&](const char* path, const char* value) {
    return std::string(FillField(path, ParseYaml(value, source).value(), source,
                                 job, positions)
                           .message());
  };
  EXPECT_EQ(set("optimizer.betas", "[0.9, 0.95]"), "");
  EXPECT_EQ(set("optimizer.betas", "[0.8]"), "");
  EXPECT_EQ(job.optimizer().betas_size(), 1);
  EXPECT_EQ(set("model", "{hidden_size: 8}"), "");
  EXPECT_EQ(job.model().hidden_size(), 8);
  EXPECT_EQ(positions.at("model.hidden_size"), "--set x");
  EXPECT_EQ(set("model.hidden_size", "null"), "");
  EXPECT_FALSE(job.model().has_hidden_size());
  EXPECT_EQ(set("model.hiden_size", "8"),
            "--set x: model.hiden_size: no such field; did you mean "
            "hidden_size?");
  EXPECT_EQ(set("name.first", "a"), "--set x: name has no fields");
}

// `data: [...]` is short for `data: {sources: [...]}`.
TEST(FillMessage, ASectionWithSourcesMayBeTheirList) {
  JobSpec job;
  PositionMap positions;
  const YamlNode root =
      ParseYaml("data: [{tokens: a, weight: 0.7}, {tokens: b}]\n", kSource)
          .value();
  ASSERT_TRUE(FillMessage(root, kSource, job, positions).ok());
  ASSERT_EQ(job.data().sources_size(), 2);
  EXPECT_EQ(job.data().sources(0).weight(), 0.7);
  EXPECT_EQ(job.data().sources(1).tokens(), "b");
  EXPECT_EQ(positions.at("data.sources[1].tokens"), "job.yaml:1:43");
  EXPECT_EQ(ErrorOf("data: [{tokns: a}]\n"),
            "job.yaml:1:9: data.sources[0].tokns: no such field; did you mean "
            "tokens?");
}

TEST(FillMessage, ASingleValueIsAListOfOne) {
  JobSpec job;
  PositionMap positions;
  const YamlNode root =
      ParseYaml("model: {forward_us: 18000}", kSource).value();
  ASSERT_TRUE(FillMessage(root, kSource, job, positions).ok());
  ASSERT_EQ(job.model().forward_us_size(), 1);
  EXPECT_EQ(job.model().forward_us(0), 18000);
}

// Lists of sections, and sections under names of the user's choice.
TEST(FillMessage, FillsListsAndMapsOfSections) {
  const auto fill = [](const std::string& text, ClusterSpec& cluster) {
    PositionMap positions;
    const YamlNode root = ParseYaml(text, kSource).value();
    const absl::Status status = FillMessage(root, kSource, cluster, positions);
    return std::string(status.message());
  };
  ClusterSpec cluster;
  EXPECT_EQ(fill("nodes: [{workers: 8}, {count: 3}]\n"
                 "devices: {big: {kind: gpu}, small: {overhead_us: 2}}\n",
                 cluster),
            "");
  ASSERT_EQ(cluster.nodes_size(), 2);
  EXPECT_EQ(cluster.nodes(0).workers(), 8);
  EXPECT_EQ(cluster.nodes(1).count(), 3);
  ASSERT_EQ(cluster.devices_size(), 2);
  EXPECT_EQ(cluster.devices().at("big").kind(), "gpu");
  EXPECT_EQ(cluster.devices().at("small").overhead_us(), 2);
  EXPECT_EQ(fill("nodes: [8]", cluster),
            "job.yaml:1:9: nodes[0]: expected fields, as in \"count: ...\", "
            "found the number 8");
  EXPECT_EQ(fill("nodes: [{wokers: 8}]", cluster),
            "job.yaml:1:10: nodes[0].wokers: no such field; did you mean "
            "workers?");
  EXPECT_EQ(fill("devices: 7", cluster),
            "job.yaml:1:10: devices: expected names with a section each, as in "
            "devices: {NAME: {...}}, found the number 7");
  EXPECT_EQ(fill("devices: {big: {kind: []}}", cluster),
            "job.yaml:1:23: devices.big.kind: expected a text, found a list");
}

// A section with a mode may be that alone.
TEST(FillMessage, TakesAModeForItsSection) {
  const auto fill = [](const std::string& text) {
    JobSpec job;
    PositionMap positions;
    const YamlNode root = ParseYaml(text, kSource).value();
    EXPECT_TRUE(FillMessage(root, kSource, job, positions).ok()) << text;
    EXPECT_EQ(positions.count("memory.recompute"), 1u);
    return job.memory().recompute();
  };
  EXPECT_EQ(fill("memory: {recompute: full}").mode(), "full");
  EXPECT_EQ(fill("memory: {recompute: {mode: auto}}").mode(), "auto");
  JobSpec job;
  PositionMap positions;
  const YamlNode root = ParseYaml("memory: auto", kSource).value();
  EXPECT_TRUE(FillMessage(root, kSource, job, positions).ok());
  EXPECT_EQ(job.memory().ShortDebugString(), "mode: \"auto\"");
  const RecomputeSpec listed = fill("memory: {recompute: {units: [1, 2]}}");
  EXPECT_FALSE(listed.has_mode());
  EXPECT_EQ(listed.units_size(), 2);
  EXPECT_EQ(ErrorOf("memory: {recompute: [1]}"),
            "job.yaml:1:21: memory.recompute: expected fields, as in "
            "\"mode: ...\", found a list");
}

TEST(FieldPaths, ListsEveryValue) {
  const std::vector<std::string> paths = FieldPaths(*JobSpec::descriptor());
  EXPECT_EQ(paths.front(), "name");
  EXPECT_EQ(paths[1], "model.architecture");
  EXPECT_NE(std::find(paths.begin(), paths.end(), "checkpoint.resume"),
            paths.end());
}

// The first cell of each table row that is a path in backticks.
std::set<std::string> DocumentedPaths() {
  std::ifstream in("docs/job.md");
  EXPECT_TRUE(in.good());
  std::set<std::string> paths;
  std::string line;
  while (std::getline(in, line)) {
    const std::vector<std::string> parts = absl::StrSplit(line, '`');
    if (parts.size() < 3 || parts[0] != "| ") continue;
    if (absl::StrContains(parts[1], ' ')) continue;  // words, no path
    EXPECT_TRUE(paths.insert(parts[1]).second) << parts[1] << " twice";
    EXPECT_EQ(std::count(line.begin(), line.end(), '|'), 5) << line;
  }
  return paths;
}

// docs/job.md: every field has its row, every row its field.
TEST(FieldPaths, AreTheOnesOfTheReference) {
  const std::vector<std::string> paths = FieldPaths(*JobSpec::descriptor());
  EXPECT_EQ(DocumentedPaths(),
            std::set<std::string>(paths.begin(), paths.end()));
}

}  // namespace
}  // namespace troupe
