#include "clients/cli/view/plan_view.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "gmock/gmock.h"
#include "google/protobuf/text_format.h"
#include "gtest/gtest.h"

namespace troupe {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr char kRank[] =
    "memory { tier: DEVICE item: 'parameters' bytes: 41943040 }"
    "memory { tier: DEVICE item: 'activations' bytes: 10485760 }"
    "memory { tier: HOST item: 'buffers' bytes: 1024 }"
    "budgets { tier: DEVICE bytes: 1073741824 }"
    "bytes_sent_per_step: 62914560 compute_seconds: 0.4"
    " exposed_communication_seconds: 0.02";

Plan SomePlan() {
  std::string ranks;
  for (int rank = 0; rank < 3; ++rank) {
    ranks += "ranks { rank: " + std::to_string(rank) + " " + kRank +
             (rank == 2 ? " memory { tier: DEVICE item: 'parameters' bytes: "
                          "1048576 }"
                        : "") +
             " }";
  }
  const std::string text =
      "job { name: 'demo' training { micro_batch_size: 4 } }"
      "mesh { axes { name: 'data' size: 3 } } fingerprint: 'abc'"
      "groups { name: 'data' spans { axis: 'data' }"
      " carriers { backend: 'shared_memory' } }"
      "derived { data_parallel_size: 3 micro_batches: 2 tokens_per_step: 8192"
      " parameters: 10800000 model_flops_per_token: 7.1e7 }"
      "prediction { bubble_of_total: 0.04 bubble_of_ideal: 0.042"
      " step_seconds: 0.42 tokens_per_second: 19500"
      " model_flops_utilization: 0.41 peak_flops_per_second: 3.4e12"
      " limited_by: 'computing: 95 % of the step' " +
      ranks +
      "}"
      "roles { programs { kind: TRAIN instructions { kind: LOAD_BATCH"
      " lane: 1 micro_batch: 0 } } }"
      "lanes { name: 'COMPUTE' kind: COMPUTE runs: FORWARD }"
      "lanes { name: 'DATA' kind: IO runs: LOAD_BATCH }";
  Plan plan;
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(text, &plan));
  return plan;
}

TEST(PlanView, FoldsRanksThatAreAlike) {
  EXPECT_EQ(MemoryTable(SomePlan().prediction()),
            "  tier    item         ranks 0-1    rank 2\n"
            "  device  parameters    40.0 MiB  41.0 MiB\n"
            "          activations   10.0 MiB  10.0 MiB\n"
            "          total         50.0 MiB  51.0 MiB\n"
            "          of budget      1.0 GiB   1.0 GiB\n"
            "  host    buffers        1.0 KiB   1.0 KiB\n"
            "          total          1.0 KiB   1.0 KiB\n"
            "          of budget            -         -\n");
}

TEST(PlanView, SaysWhoHasExpertsAndTheWorstRouting) {
  Plan plan = SomePlan();
  EXPECT_THAT(PlanText(plan), testing::Not(HasSubstr("experts")));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "tensors { dims { sections { kind: STATISTICS count: 4 width: 1 } }"
      " dims { sections { kind: STATISTICS count: 9 width: 1 } } }"
      // Of 10 rows that are dispatched, a round has room for 20.
      "tensors { dims { sections { kind: CHOICES count: 10 width: 1 } }"
      " dims { sections { kind: HIDDEN count: 4 width: 1 } } }"
      "tensors { expected_rows: 15"
      " dims { sections { kind: CHOICES count: 20 width: 1 } }"
      " dims { sections { kind: HIDDEN count: 4 width: 1 } } }"
      "tensors { expected_rows: 0"
      " dims { sections { kind: CHOICES count: 20 width: 1 } }"
      " dims { sections { kind: HIDDEN count: 4 width: 1 } } }"
      "ops { kind: DISPATCH outputs { name: 'rows' tensor: 1 } }"
      "ops { kind: REGROUP inputs { name: 'offsets' }"
      " inputs { name: 'x' tensor: 2 }"
      " round { axes: 'expert' axes: 'tensor' ranks: 4 } }"
      "ops { kind: REGROUP inputs { name: 'offsets' }"
      " inputs { name: 'x' tensor: 3 }"
      " round { axes: 'expert' axes: 'tensor' ranks: 4 number: 1 } }",
      plan.add_tables()));
  EXPECT_THAT(
      PlanText(plan),
      HasSubstr("\n  experts          2 of 8 on each of the 4 ranks along "
                "expert x tensor\n"
                "                   predicted with an even load\n"
                "                   at worst one rank gets all rows, 4 times "
                "as many, in 2 rounds\n"));
  plan.mutable_job()->mutable_model()->mutable_experts()->set_load("measured");
  plan.mutable_prediction()->set_worst_routing_seconds(0.9);
  EXPECT_THAT(
      PlanText(plan),
      HasSubstr("predicted with the measured load: the busiest rank gets 1.50 "
                "times the rows of an even one\n"
                "                   at worst one rank gets all rows, 4 times "
                "as many, in 2 rounds: 900 ms a step\n"));
  // Experts on one rank each, and attention partitioned over all.
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "parameters { offset: 0 dims { sections { kind: HIDDEN } } }"
      "parameters { offset: 32 dims { sections { kind: EXPERT_WEIGHTS } } }"
      "parts { elements: 32 } parts { elements: 64 } table: 0",
      plan.add_units()));
  EXPECT_TRUE(google::protobuf::TextFormat::ParseFromString(
      "unit: 0 parts { dealt: 0 } parts { }",
      plan.mutable_roles(0)->add_placements()));
  EXPECT_THAT(
      PlanText(plan),
      HasSubstr("\n                   experts are not partitioned, the rest of "
                "their layers is partitioned over 3 ranks\n"));
}

TEST(PlanView, SaysHowTheMachineIs) {
  Plan plan = SomePlan();
  MachinePace& pace = *plan.mutable_prediction()->mutable_machine();
  EXPECT_THAT(PlanText(plan),
              HasSubstr("\n  machine          as fast as at calibration\n"));
  pace.set_slower(0.5);
  pace.set_others(0.3);
  EXPECT_THAT(PlanText(plan),
              HasSubstr("\n  machine          50 % slower than at calibration "
                        "(others use 30 %), for which this is predicted; a "
                        "step may take 630 ms\n"));
}

TEST(PlanView, SaysWhatStagesTakeOnDevicesThatDiffer) {
  Plan plan = SomePlan();
  Axis& axis = *plan.mutable_mesh()->add_axes();
  axis.set_name("pipeline");
  axis.set_size(2);
  for (const Unit::Kind kind :
       {Unit::EMBEDDING, Unit::BLOCK, Unit::BLOCK, Unit::HEAD}) {
    plan.add_units()->set_kind(kind);
  }
  for (int s = 0; s < 2; ++s) {
    Stage& stage = *plan.add_stages();
    stage.set_unit(s == 0 ? 0 : 3);
    stage.set_unit_count(s == 0 ? 3 : 1);
    stage.add_pipeline_ranks(s);
  }
  EXPECT_THAT(PlanText(plan), HasSubstr(": units 0-2 | 3\n  parameters"));
  for (const char* const device : {"NVIDIA H200 of fast", "cpu of slow"}) {
    StagePrediction& stage = *plan.mutable_prediction()->add_stages();
    stage.set_seconds(0.0123);
    stage.set_device(device);
  }
  EXPECT_THAT(
      PlanText(plan),
      HasSubstr(
          ": units 0-2 | 3\n"
          "    stage  units  layers  pipeline ranks  a micro-batch  slowest "
          "rank\n"
          "        0  0-2         2  0                     12.3 ms  NVIDIA "
          "H200 "
          "of fast\n"
          "        1  3           0  1                     12.3 ms  cpu of "
          "slow\n"));
}

TEST(PlanView, SaysHowMicroBatchesAreSplit) {
  Plan plan = SomePlan();
  EXPECT_THAT(PlanText(plan),
              HasSubstr("micro-batches    2 of 4 sequences on each rank\n"));
  for (const int count : {2, 1, 2}) {
    plan.mutable_derived()->add_replica_micro_batches(count);
  }
  EXPECT_THAT(
      PlanText(plan),
      HasSubstr("micro-batches    [2, 1, 2] of 4 sequences on the replicas\n"));
}

TEST(PlanView, SaysWhereSlicesAreUneven) {
  Plan plan = SomePlan();
  EXPECT_THAT(PlanText(plan), Not(HasSubstr("  slices  ")));
  for (const int weight : {4, 1}) {
    plan.mutable_job()->mutable_parallelism()->add_zero_weights(weight);
  }
  EXPECT_THAT(PlanText(plan), HasSubstr("  slices           in proportion to "
                                        "[4, 1] on the replicas\n"));
}

TEST(PlanView, SaysWhichServersThereAre) {
  Plan plan = SomePlan();
  ParallelismSpec& parallelism = *plan.mutable_job()->mutable_parallelism();
  parallelism.set_data(2);
  parallelism.set_servers(1);
  plan.mutable_job()->mutable_servers()->set_mode("sync");
  for (const int count : {2, 2, 0}) {
    plan.mutable_derived()->add_replica_micro_batches(count);
  }
  EXPECT_THAT(PlanText(plan),
              HasSubstr("servers          1 behind 2 replicas, sync\n"
                        "  micro-batches    2 of 4 sequences on each "
                        "replica\n"));
  plan.mutable_derived()->set_takes_turns(true);
  plan.mutable_job()->mutable_servers()->set_mode("bounded");
  plan.mutable_job()->mutable_servers()->set_staleness(3);
  EXPECT_THAT(PlanText(plan),
              HasSubstr("1 behind 2 replicas, bounded by 3: each step is one "
                        "replica's\n"));
}

TEST(PlanView, SaysWhatMemoryWasChosen) {
  Plan plan = SomePlan();
  plan.mutable_prediction()->set_chosen_memory("memory.optimizer: host (+9 %)");
  EXPECT_THAT(
      PlanText(plan),
      HasSubstr("\n  memory: auto     memory.optimizer: host (+9 %)\n"));
}

TEST(PlanView, SaysHowFarAheadGathersRun) {
  Plan plan = SomePlan();
  plan.mutable_prediction()->set_gathers(
      "up to 3 units ahead of use, in 9 MiB");
  EXPECT_THAT(
      PlanText(plan),
      HasSubstr("\n  gathers          up to 3 units ahead of use, in 9 MiB\n"));
}

TEST(PlanView, SaysHowFastLinksAreAndWhoSaysSo) {
  Plan plan = SomePlan();
  const auto add = [&](const char* what, double rate, RateSource source,
                       const char* why) {
    LinkUsed& used = *plan.mutable_prediction()->add_links();
    used.set_what(what);
    used.mutable_link()->mutable_rate()->set_bytes_per_second(rate);
    used.mutable_link()->mutable_rate()->set_latency_us(30);
    used.mutable_link()->set_source(source);
    used.mutable_link()->set_why(why);
  };
  add("within hosts", 240e9, GIVEN, "");
  add("between hosts", 1.1e9, ASSUMED, "nobody has measured it");
  EXPECT_THAT(PlanText(plan),
              HasSubstr("\n  links            within hosts 240 GB/s, 30 us "
                        "(given); between hosts 1.1 GB/s, 30 us (assumed: "
                        "nobody has measured it)\n"));
}

TEST(PlanView, SaysWhatWasDerivedAndPredicted) {
  const Plan plan = SomePlan();
  EXPECT_EQ(PlanText(plan),
            "plan of demo, fingerprint abc\n"
            "  mesh             data 3\n"
            "  communication    data over shared_memory\n"
            "  parameters       10.8M\n"
            "  micro-batches    2 of 4 sequences on each rank\n"
            "  tokens/step      8,192\n"
            "  model FLOPs      71.0M a token\n"
            "\nmemory of a rank\n" +
                MemoryTable(plan.prediction()) +
                "\nprediction\n"
                "  step time        420 ms  (compute 400 ms, communication not "
                "hidden 20.0 ms)\n"
                "  bubble           4.0% of the step, 4.2% of the ideal one\n"
                "  tokens/s         19.5k\n"
                "  MFU              41.0% of 3.4TFLOP/s, as measured\n"
                "  sent by a rank   60.0 MiB a step\n"
                "  limited by       computing: 95 % of the step\n"
                "\njob, resolved\n"
                "  name: demo\n"
                "  training:\n"
                "    micro_batch_size: 4\n");
}

TEST(PlanView, SaysWhatUtilizationIsMeasuredAgainst) {
  Plan plan = SomePlan();
  plan.mutable_prediction()->set_datasheet_flops_per_second(4e12);
  EXPECT_THAT(PlanText(plan),
              HasSubstr("\n  MFU              41.0% of 4.0TFLOP/s by the "
                        "datasheets; products reach 3.4TFLOP/s\n"));
}

// Of the rank that moves most, and of the one that waits longest.
TEST(PlanView, SaysWhatMovesBetweenTiers) {
  Plan plan = SomePlan();
  EXPECT_EQ(PlanText(plan).find("moved by a rank"), std::string::npos);
  for (const auto& [rank, tiers] :
       {std::make_pair(0,
                       "tiers { tier: HOST bytes_out: 2048 }"
                       "tiers { tier: NVME bytes_in: 8192 bytes_out: 8192"
                       " waited_seconds: 3 }"),
        std::make_pair(1,
                       "tiers { tier: NVME bytes_in: 4096"
                       " waited_seconds: 4 }")}) {
    RankPrediction more;
    ASSERT_TRUE(google::protobuf::TextFormat::ParseFromString(tiers, &more));
    plan.mutable_prediction()->mutable_ranks(rank)->MergeFrom(more);
  }
  EXPECT_THAT(PlanText(plan),
              HasSubstr("\n  moved by a rank  0 B up from host, 2.0 KiB down "
                        "to it, waits 0 s for it; 8.0 KiB up from nvme, "
                        "8.0 KiB down to it, waits 4.00 s for it, a step\n"));
}

TEST(PlanView, SaysWhichUnitsTheStagesHave) {
  Plan plan = SomePlan();
  EXPECT_EQ(PlanText(plan).find("stages"), std::string::npos);
  Axis& pipeline = *plan.mutable_mesh()->add_axes();
  pipeline.set_name("pipeline");
  pipeline.set_size(2);
  plan.mutable_job()->mutable_parallelism()->set_pipeline_schedule("1f1b");
  for (const int first : {0, 3}) {
    Stage& stage = *plan.add_stages();
    stage.set_unit(first);
    stage.set_unit_count(first == 0 ? 3 : 1);
  }
  EXPECT_NE(PlanText(plan).find(
                "  stages           2 on 2 ranks, 1f1b: units 0-2 | 3\n"),
            std::string::npos)
      << PlanText(plan);
}

TEST(PlanView, ShowsEachRoleOnce) {
  EXPECT_EQ(ProgramsText(SomePlan()),
            "## all ranks, ranks 0-2\n# TRAIN\nL m0\n\n");
}

// Where not all groups of a kind are carried alike, it says how many are.
TEST(PlanView, SaysWhatCarriesTheGroups) {
  Plan plan = SomePlan();
  Axis& tensor = *plan.mutable_mesh()->add_axes();
  tensor.set_name("tensor");
  tensor.set_size(2);
  Group& group = *plan.add_groups();
  group.set_name("tensor-exchanges");
  group.add_spans()->set_axis("tensor");
  for (const char* backend : {"nccl", "gloo", "nccl"}) {
    group.add_carriers()->set_backend(backend);
  }
  EXPECT_NE(PlanText(plan).find(
                "  communication    1 of tensor-exchanges over gloo; 2 of "
                "tensor-exchanges over nccl; data over shared_memory\n"),
            std::string::npos)
      << PlanText(plan);
}

TEST(PlanView, SaysWhatEachLevelOfAnExchangeTakes) {
  Plan plan = SomePlan();
  EXPECT_EQ(PlanText(plan).find("  exchanges "), std::string::npos);
  ExchangePrediction& exchange = *plan.mutable_prediction()->add_exchanges();
  exchange.set_group("data");
  exchange.set_collective(ALL_REDUCE);
  exchange.set_ranks(4);
  exchange.set_bytes(24 << 20);
  exchange.set_row("two_level");
  exchange.set_seconds(0.031);
  exchange.set_flat_seconds(0.048);
  ExchangePrediction::OfLevel& within = *exchange.add_levels();
  within.set_name("within hosts");
  within.set_size(2);
  within.set_bytes(24 << 20);
  within.set_seconds(0.012);
  ExchangePrediction& pieces = *plan.mutable_prediction()->add_exchanges();
  pieces = exchange;
  pieces.set_row("blueconnect");
  pieces.set_pieces(8);
  ExchangePrediction& flat = *plan.mutable_prediction()->add_exchanges();
  flat.set_group("data");
  flat.set_collective(REDUCE_SCATTER);
  flat.set_ranks(4);
  flat.set_bytes(1 << 10);
  flat.set_row("flat");
  flat.set_seconds(0.001);
  plan.mutable_groups(0)->set_why_flat("reduce-scatter is flat: it is small");
  const std::string margin(19, ' ');
  EXPECT_NE(
      PlanText(plan).find(absl::StrCat(
          "  exchanges        data: all-reduce of 24.0 MiB by 4 ranks: "
          "two_level 31.0 ms (flat 48.0 ms): within hosts of 2: 24.0 MiB, "
          "12.0 ms\n",
          margin,
          "data: all-reduce of 24.0 MiB by 4 ranks: blueconnect 31.0 ms (flat "
          "48.0 ms) at once on 8 pieces: within hosts of 2: 24.0 MiB, 12.0 "
          "ms\n",
          margin, "data: reduce-scatter of 1.0 KiB by 4 ranks: flat 1.00 ms\n",
          margin, "data: reduce-scatter is flat: it is small\n")),
      std::string::npos)
      << PlanText(plan);
  const auto says = [&](const std::string& words) {
    return PlanText(plan).find(words) != std::string::npos;
  };
  const ExchangePrediction small = flat;
  const auto add = [&](int count) {
    for (int i = 0; i < count; ++i) {
      *plan.mutable_prediction()->add_exchanges() = small;
    }
  };
  add(5);
  EXPECT_TRUE(says("and 2 smaller ones\n"));
  add(92);
  EXPECT_TRUE(says("and 94 or more smaller ones\n"))
      << "a prediction has no more than a hundred";
}

}  // namespace
}  // namespace troupe
