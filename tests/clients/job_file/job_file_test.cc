#include "clients/job_file/job_file.h"

#include <filesystem>
#include <fstream>

#include "gtest/gtest.h"

namespace troupe {
namespace {

namespace fs = std::filesystem;

constexpr char kJob[] =
    "name: demo\n"
    "data: {tokens: demo.tokens}\n"
    "parallelism:\n"
    "  data: 3\n"
    "checkpoint: {directory: ../out, resume: latest}\n";

absl::StatusOr<JobFile> Parse(const std::string& text,
                              const std::vector<std::string>& overrides = {}) {
  return ParseJob({.name = "job.yaml",
                   .folder = "/home/me/jobs",
                   .text = text,
                   .overrides = overrides});
}

std::string Refusal(const std::vector<std::string>& overrides) {
  return std::string(Parse(kJob, overrides).status().message());
}

TEST(JobFile, PathsStartFromTheFilesFolder) {
  const JobFile job = Parse(kJob).value();
  EXPECT_EQ(job.spec.data().tokens(), "/home/me/jobs/demo.tokens");
  EXPECT_EQ(job.spec.checkpoint().directory(), "/home/me/out");
  EXPECT_EQ(job.spec.checkpoint().resume(), "latest");
  const JobFile automatic = Parse(kJob, {"checkpoint.resume=auto"}).value();
  EXPECT_EQ(automatic.spec.checkpoint().resume(), "auto");
  const JobFile metrics =
      Parse(absl::StrCat(kJob, "metrics: {directory: m, tensorboard: ../tb}\n"))
          .value();
  EXPECT_EQ(metrics.spec.metrics().directory(), "/home/me/jobs/m");
  EXPECT_EQ(metrics.spec.metrics().tensorboard(), "/home/me/tb");
  // None is written; not in the file's folder.
  const JobFile none =
      Parse(absl::StrCat(kJob, "metrics: {directory: \"\"}\n")).value();
  EXPECT_TRUE(none.spec.metrics().has_directory());
  EXPECT_EQ(none.spec.metrics().directory(), "");
}

TEST(JobFile, PathsOfOverridesStartFromHere) {
  const JobFile job =
      Parse(kJob, {"data.tokens=x.tokens", "checkpoint.resume=old"}).value();
  EXPECT_EQ(job.spec.data().tokens(), fs::current_path() / "x.tokens");
  EXPECT_EQ(job.spec.checkpoint().resume(), fs::current_path() / "old");
}

TEST(JobFile, PathsOfAMixStartFromTheFilesFolder) {
  const JobFile job =
      ParseJob({.name = "job.yaml",
                .folder = "/home/me/jobs",
                .text = "data:\n  validation: v.tokens\n  sources:\n"
                        "  - {tokens: a.tokens}\n  - {tokens: /b.tokens}\n"
                        "  - {tokens: data:c.tokens}\n"})
          .value();
  EXPECT_EQ(job.spec.data().sources(0).tokens(), "/home/me/jobs/a.tokens");
  EXPECT_EQ(job.spec.data().sources(1).tokens(), "/b.tokens");
  EXPECT_EQ(job.spec.data().sources(2).tokens(), "data:c.tokens");
  EXPECT_EQ(job.spec.data().validation(), "/home/me/jobs/v.tokens");
}

TEST(JobFile, PathsOfAdaptersStartFromTheFilesFolder) {
  const JobFile job =
      Parse(absl::StrCat(kJob, "training: {lora: {adapter: mine}}\n")).value();
  EXPECT_EQ(job.spec.training().lora().adapter(), "/home/me/jobs/mine");
}

TEST(JobFile, OverridesComeAfterTheFile) {
  const JobFile job =
      Parse(kJob, {"parallelism.data=4", "optimizer.lr=1e-3",
                   "optimizer.betas=[0.9, 0.99]", "checkpoint.directory=null"})
          .value();
  EXPECT_EQ(job.spec.parallelism().data(), 4);
  EXPECT_EQ(job.spec.optimizer().lr(), 1e-3);
  EXPECT_EQ(job.spec.optimizer().betas(1), 0.99);
  EXPECT_FALSE(job.spec.checkpoint().has_directory());
}

TEST(JobFile, RefusesBadOverrides) {
  EXPECT_EQ(Refusal({"parallelism.dta=4"}),
            "--set parallelism.dta: no such field; did you mean data?");
  EXPECT_EQ(Refusal({"parallelism.data=four"}),
            "--set parallelism.data: expected an integer, found the text "
            "\"four\"");
  EXPECT_EQ(Refusal({"parallelism.data="}),
            "--set parallelism.data: no value; write null to go back to the "
            "field's default");
  EXPECT_EQ(Refusal({"parallelism"}).substr(0, 37),
            "--set parallelism: expected PATH=VALU");
  EXPECT_EQ(Refusal({"optimizer.betas=[0.9"}).substr(0, 22),
            "--set optimizer.betas:");
}

TEST(JobFile, LocatesWhatTheSchedulerRefuses) {
  const JobFile job = Parse(kJob, {"training.steps=7"}).value();
  const auto located = [&](const char* message) {
    return std::string(
        job.Locate(absl::InvalidArgumentError(message)).message());
  };
  EXPECT_EQ(located("parallelism.data: 3 does not divide"),
            "job.yaml:4:9: parallelism.data: 3 does not divide");
  EXPECT_EQ(located("parallelism.data 3 does not divide"),
            "job.yaml:4:9: parallelism.data 3 does not divide");
  EXPECT_EQ(located("parallelism.bucket_megabytes: too small"),
            "job.yaml:4:3: parallelism.bucket_megabytes: too small");
  EXPECT_EQ(located("model.hidden_size: missing"),
            "job.yaml:1:1: model.hidden_size: missing");
  EXPECT_EQ(located("training.steps: 7 is odd"),
            "--set training.steps: 7 is odd");
  EXPECT_EQ(located("data loader: broken"), "data loader: broken");
  EXPECT_EQ(located("needs 4 workers"), "needs 4 workers");
  const absl::Status other = absl::UnavailableError("parallelism.data: x");
  EXPECT_EQ(job.Locate(other), other);
}

TEST(JobFile, RefusesAnEmptyFile) {
  EXPECT_EQ(Parse("# nothing\n").status().message(),
            "job.yaml:1:1: the job file is empty");
}

TEST(JobFile, SaysWhichFileIsMissing) {
  const absl::Status missing = LoadJobFile({.path = "no/such.yaml"}).status();
  EXPECT_EQ(missing.code(), absl::StatusCode::kNotFound);
  EXPECT_EQ(missing.message(),
            "no/such.yaml: cannot open the job file; is it there?");
  EXPECT_EQ(LoadJobFile({.path = "/tmp"}).status().message(),
            "/tmp: is a folder; expected a job file");
}

TEST(JobFile, CarriesTheTextOfAGraph) {
  const std::string folder = ::testing::TempDir();
  const std::string job = folder + "/graph_job.yaml";
  std::ofstream(job) << "name: a\nmodel: {graph: my.graph}\n";
  const std::string graph = folder + "/my.graph";
  fs::remove(graph);
  const std::string where = job + ":2:16: model.graph: " +
                            fs::path(graph).lexically_normal().string();
  EXPECT_EQ(LoadJobFile({.path = job}).status().message(),
            where + ": is no file; give one of units and ops (docs/graph.md)");
  std::ofstream(graph) << "vocab_size: 5\n";
  const JobFile loaded = LoadJobFile({.path = job}).value();
  EXPECT_EQ(loaded.spec.model().graph_text(), "vocab_size: 5\n");
  std::ofstream(graph) << "\xff";
  EXPECT_EQ(LoadJobFile({.path = job}).status().message(),
            where + ": is empty, or no UTF-8 text");
  std::ofstream(graph) << std::string((1 << 20) + 1, ' ');
  EXPECT_EQ(LoadJobFile({.path = job}).status().message(),
            where +
                ": has more than 1048576 bytes; use `repeat` for equal "
                "units");
}

TEST(JobFile, ReadsTheDemo) {
  const JobFile demo =
      LoadJobFile({.path = "clients/examples/demo.yaml"}).value();
  EXPECT_EQ(demo.spec.name(), "demo");
  EXPECT_EQ(demo.spec.parallelism().data(), 4);
  EXPECT_EQ(demo.spec.data().tokens(),
            fs::current_path() / "clients/examples/demo.tokens");
}

TEST(JobFile, ReadsTheExampleOfMetrics) {
  const JobFile job =
      LoadJobFile({.path = "clients/examples/metrics.yaml"}).value();
  EXPECT_EQ(job.spec.metrics().tensorboard(),
            fs::current_path() / "clients/examples/runs/book/tb");
  EXPECT_EQ(job.spec.checkpoint().resume(), "auto");
}

TEST(JobFile, CarriesHowExpertsWereLoaded) {
  const std::string folder = testing::TempDir();
  const std::string job = folder + "/load_job.yaml";
  std::ofstream(job)
      << "name: a\nmodel: {experts: {load: measured, load_file: loads.json}}\n";
  const std::string loads = folder + "/loads.json";
  fs::remove(loads);
  const auto refusal = [&] {
    return std::string(LoadJobFile({.path = job}).status().message());
  };
  EXPECT_NE(refusal().find("load_job.yaml:2:"), std::string::npos);
  EXPECT_NE(refusal().find("model.experts.load_file: "), std::string::npos);
  EXPECT_NE(refusal().find("is no file; save what"), std::string::npos);
  std::ofstream(loads) << "<html>";
  EXPECT_NE(refusal().find("is no JSON; want what"), std::string::npos);
  std::ofstream(loads)
      << R"({"stride":2,"points":[{"first":1,"last":2,"layers":[)"
      << R"({"unit":1,"load":[1,1]}]},{"first":3,"last":3,"layers":[)"
      << R"({"unit":1,"load":[2,0]}]}]})";
  const JobFile loaded = LoadJobFile({.path = job}).value();
  const ExpertsSpec& experts = loaded.spec.model().experts();
  EXPECT_EQ(experts.load_file(), fs::path(loads).lexically_normal());
  ASSERT_EQ(experts.measured_size(), 1);
  EXPECT_EQ(experts.measured(0).unit(), 1);
  EXPECT_DOUBLE_EQ(experts.measured(0).load(0), 4.0 / 3);
  EXPECT_DOUBLE_EQ(experts.measured(0).load(1), 2.0 / 3);
}

}  // namespace
}  // namespace troupe
