// Classifier of 28×28 grey pictures: two blocks of two 3×3 convolutions with batch norm, then two linear layers.
#include <trireme/model.h>
using namespace trireme;

// Two 3×3 convolutions with batch norm and relu, then half the extents. A bias would vanish in the batch norm.
class Block {
 public:
  Block(Model& model, const std::string& name, std::int64_t in, std::int64_t out)
      : conv1_(model, name + ".conv1", in, out, {.padding = 1, .bias = false}),
        conv2_(model, name + ".conv2", out, out, {.padding = 1, .bias = false}),
        norm1_(model, name + ".norm1", out),
        norm2_(model, name + ".norm2", out) {}

  Tensor operator()(Tensor x) const {               // (B, H, W, in)
    x = relu(norm1_(conv1_(x)));                    // (B, H, W, out)
    return max_pool2d(relu(norm2_(conv2_(x))), 2);  // (B, H/2, W/2, out)
  }
  std::int64_t out() const { return conv2_.out(); }

 private:
  Conv2d conv1_, conv2_;
  BatchNorm norm1_, norm2_;
};

class ConvNet final : public Model {
 public:
  explicit ConvNet(Config& c)
      : block1_(*this, "block1", 1, c.integer("width1", 32, "channels of the first block", {1, 4096})),
        block2_(*this, "block2", block1_.out(), c.integer("width2", 64, "channels of the second block", {1, 4096})),
        fc_(*this, "fc", 7 * 7 * block2_.out(), c.integer("hidden", 128, "width of the hidden layer", {1, 65536})),
        head_(*this, "head", fc_.out(), c.integer("classes", 10, "number of classes", {2, 65536})),
        dropout_(c.number("dropout", 0.25, "probability, before the last layer", {0, 0.9})) {}

  Outputs forward(const Batch& batch) override {
    Tensor x = batch["image"];                                // (B, 28, 28) or (B, 28, 28, 1)
    if (x.dtype() != TRIREME_F32) x = convert(x, 1.0 / 255);  // grey levels 0 … 255
    x = x.reshape({-1, 28, 28, 1});
    x = block2_(block1_(x));                // (B, 14, 14, 32), (B, 7, 7, 64)
    x = dropout_(relu(fc_(x.flatten(1))));  // (B, 128)
    return {{"logits", head_(x)}};          // (B, 10)
  }

  Loss loss(const Outputs& out, const Batch& batch) override {
    report("accuracy", accuracy(out["logits"], batch["label"]));
    return cross_entropy(out["logits"], batch["label"]);
  }

 private:
  Block block1_, block2_;
  Linear fc_, head_;
  Dropout dropout_;
};
TRIREME_MODEL(ConvNet, "convnet", "1.0")
