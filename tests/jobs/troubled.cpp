// A plugin whose author made mistakes: it throws in one of its calls, or makes gradients too large to be held.
#include <trireme/model.h>

#include <clocale>
#include <locale>
#include <stdexcept>
using namespace trireme;

struct Comma : std::numpunct<char> {
  char do_decimal_point() const override { return ','; }
  char do_thousands_sep() const override { return '.'; }
  std::string do_grouping() const override { return "\3"; }
};

class Troubled final : public Model {
 public:
  explicit Troubled(Config& c)
      : throws_at_(c.integer("throws_at", -1, "the call of forward that throws; 0: create throws")),
        amplify_(c.boolean("amplify", false, "logits, and so gradients, four times as large")),
        noisy_(c.boolean("noisy", false, "random numbers go into the logits, in evaluation too")),
        head_(*this, "head", 784, 10) {
    const bool swapped = c.boolean("swapped", false, "two parameters of one shape are declared the other way round");
    for (const char* name : {swapped ? "up" : "down", swapped ? "down" : "up"})
      parameter(name, {10}, Init::normal(0, 1));
    if (c.boolean("comma", false, "the process writes numbers as 1.234,5 from now on")) {
      for (const char* name : {"de_DE.UTF-8", "fr_FR.UTF-8"})  // C's own, if it is installed
        if (std::setlocale(LC_ALL, name) != nullptr) break;
      std::locale::global(std::locale(std::locale::classic(), new Comma));
    }
    if (throws_at_ == 0) throw std::runtime_error("no weights in the cupboard");
  }
  Outputs forward(const Batch& batch) override {
    if (++calls_ == throws_at_) throw std::runtime_error("the index 17 is out of range");
    Tensor y = head_(batch["image"].flatten(1));  // (B, 10)
    if (amplify_) y = add(add(y, y), add(y, y));
    if (noisy_) {
      const Tensor noise = allocate({rows(), 10});
      context().check(context().host().random(context().core(), TRIREME_RANDOM_NORMAL, 0, 1, noise.id()));
      y = add(y, noise);
    }
    return {{"logits", y}};
  }
  Loss loss(const Outputs& out, const Batch& batch) override {
    report("accuracy", accuracy(out["logits"], batch["label"]));
    return cross_entropy(out["logits"], batch["label"]);
  }

 private:
  std::int64_t throws_at_, calls_ = 0;
  bool amplify_, noisy_;
  Linear head_;
};
TRIREME_MODEL(Troubled, "troubled", "0.1")
