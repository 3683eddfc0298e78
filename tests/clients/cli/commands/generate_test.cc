#include "gtest/gtest.h"
#include "tests/clients/cli/command_test_base.h"

namespace troupe {
namespace {

class GenerateTest : public CommandTestBase {};

TEST_F(GenerateTest, WritesThePromptAndWhatFollows) {
  scheduler_.text = {" upon", " a time"};
  const CommandOutcome outcome =
      Ask({"generate", "latest", "--prompt", "Once", "--top-k", "5", "--seed",
           "7", "--temperature", "0.5", "--max-new-tokens", "12"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "Once upon a time\n");
  const GenerateRequest request = scheduler_.asked().generated.at(0);
  EXPECT_EQ(request.job(), 2);
  EXPECT_EQ(request.prompt(), "Once");
  EXPECT_EQ(request.top_k(), 5);
  EXPECT_EQ(request.seed(), 7);
  EXPECT_EQ(request.temperature(), 0.5);
  EXPECT_EQ(request.max_new_tokens(), 12);
  EXPECT_FALSE(request.ignore_eos());
  EXPECT_FALSE(request.has_tensor());
  EXPECT_FALSE(request.has_pipeline());
  Ask({"generate", "latest", "--prompt", "Once", "--ignore-eos"});
  EXPECT_TRUE(scheduler_.asked().generated.at(1).ignore_eos());
}

TEST_F(GenerateTest, WritesMessagesByAChatTemplate) {
  scheduler_.text = {"Hello"};
  const std::string messages =
      File("q.json", R"([{"role": "user", "content": "Hi"}])");
  const std::string format =
      File("c.jinja",
           "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}"
           "{% if add_generation_prompt %}<assistant>{% endif %}");
  const CommandOutcome outcome = Ask({"generate", "latest", "--messages",
                                      messages, "--chat-template", format});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  EXPECT_EQ(outcome.out, "Hello\n") << "the answer alone";
  EXPECT_EQ(scheduler_.asked().generated.at(0).prompt(), "<user>Hi<assistant>");
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{
           {"generate", "1", "--messages", messages},
           {"generate", "1", "--prompt", "x", "--chat-template", format},
           {"generate", "1", "--prompt", "x", "--messages", messages,
            "--chat-template", format}}) {
    EXPECT_EQ(Ask(wrong).code, 2);
  }
  const CommandOutcome bad =
      Ask({"generate", "1", "--messages", File("b.json", "[1]"),
           "--chat-template", format});
  EXPECT_EQ(bad.code, 1);
  EXPECT_NE(bad.err.find("message 1 is a number"), std::string::npos)
      << bad.err;
  const CommandOutcome unknown =
      Ask({"generate", "1", "--messages", messages, "--chat-template",
           File("bos.jinja", "{{- bos_token }}x")});
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.err.find("give the model's by --tokenizer DIR"),
            std::string::npos)
      << unknown.err;
}

TEST_F(GenerateTest, TakesACheckpointInsteadOfAJob) {
  EXPECT_EQ(
      Ask({"generate", "--checkpoint", "/c/step-9", "--prompt", "x"}).code, 0);
  EXPECT_EQ(scheduler_.asked().generated.at(0).checkpoint(), "/c/step-9");
  EXPECT_EQ(scheduler_.asked().generated.at(0).job(), 0);
  for (const std::vector<std::string>& wrong :
       std::vector<std::vector<std::string>>{
           {"generate", "--prompt", "x"},
           {"generate", "1", "--checkpoint", "c", "--prompt", "x"},
           {"generate", "1"},
           {"generate", "1", "--prompt", "x", "--prompt-ids", "1"},
           {"generate", "1", "--prompt-ids", "1,x"},
           {"generate", "1", "--prompt-ids", "1,,2"},
           {"generate", "1", "--prompt-ids", "1,2,"},
           {"generate", "1", "--prompt-ids", ","},
           {"generate", "1", "--prompt", "x", "--seed", "99999999999999999999"},
           {"generate", "1", "--prompt-ids", "-1"},
           {"generate", "1", "--prompt", "x", "--tensor", "0"},
           {"generate", "1", "--prompt", "x", "--pipeline", "-2"},
           {"generate", "1", "--prompt", "x", "--temperature", "-1"}}) {
    EXPECT_EQ(Ask(wrong).code, 2);
  }
}

TEST_F(GenerateTest, SaysOverHowManyWorkersTheModelIsCut) {
  EXPECT_EQ(
      Ask({"generate", "latest", "--prompt", "x", "--pipeline", "3"}).code, 0);
  EXPECT_EQ(Ask({"generate", "latest", "--prompt", "x", "--tensor", "2"}).code,
            0);
  const std::vector<GenerateRequest> asked = scheduler_.asked().generated;
  EXPECT_FALSE(asked.at(0).has_tensor());
  EXPECT_EQ(asked.at(0).pipeline(), 3);
  EXPECT_EQ(asked.at(1).tensor(), 2);
  EXPECT_FALSE(asked.at(1).has_pipeline());
}

TEST_F(GenerateTest, TakesAndWritesIds) {
  scheduler_.text = {" upon", " a time"};
  const CommandOutcome outcome =
      Ask({"generate", "latest", "--prompt-ids", "3,1,50256", "--ids"});
  EXPECT_EQ(outcome.code, 0) << outcome.err;
  const GenerateRequest request = scheduler_.asked().generated.at(0);
  EXPECT_EQ(request.prompt(), "");
  EXPECT_EQ(std::vector<int>(request.prompt_ids().begin(),
                             request.prompt_ids().end()),
            (std::vector<int>{3, 1, 50256}));
  EXPECT_EQ(outcome.out, "0,1\n");  // the fake numbers its pieces
}

}  // namespace
}  // namespace troupe
