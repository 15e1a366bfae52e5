corpus: {answer: 42, text: grüße, list: [1, two, {three: 3}]}
